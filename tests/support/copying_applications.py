"""Applications that copy each of their sources into a sink of its own, record by record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lineage_service.decode.batches import event_batch
from lineage_service.queries import RowSetQuery, StartQuery
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from tests.support.lineage_messages import APP, event, messages

__all__ = ["APP", "Source", "copying", "query_of", "sink_of"]


@dataclass(frozen=True)
class Source:
    """`counts` are the records of each of its partitions; `fields` those of the node's event."""

    partitions: Sequence[Mapping[str, Any]] = ()
    counts: Sequence[int] = ()
    name: str = "textFile"
    format: str | None = "text"
    location: str = "input"
    fields: Mapping[str, Any] = field(default_factory=dict)


def sink_of(source: int) -> int:
    return 100 + source


def query_of(source: int, *places: tuple[int, int], limit: int = 100) -> RowSetQuery:
    """For the rows of some records (partition, offset) of the sink of a source."""
    node = str(sink_of(source))
    starts = (StartQuery(node=node, partition=split, offset=at) for split, at in places)
    return RowSetQuery(starts=tuple(starts), limit=limit)


def copying(folder: Path, *sources: Source, ended: int | None = 1 << 41) -> LineageQueries:
    told = [event(contract.APPLICATION_STARTED, name="copying")]
    for number, source in enumerate(sources):
        dataset = {"namespace": "file", "name": source.location, "format": source.format}
        told += [
            event(
                contract.NODE_REGISTERED,
                **{
                    "node": number,
                    "name": source.name,
                    "kind": "source",
                    "relation": contract.SOURCE,
                    "exact": True,
                    "dataset": None if source.format is None else dataset,
                    **source.fields,
                },
            ),
            event(contract.NODE_REGISTERED, node=sink_of(number), name="save", kind="sink", exact=True),
            event(contract.LINK, source=number, target=sink_of(number)),
            event(contract.PARTITIONS, node=number, partitions=[dict(each) for each in source.partitions]),
        ]
        told += [
            event(
                contract.RUN_COMMITTED,
                run=1_000 * number + split + 1,
                split=split,
                action=sink_of(number),
                input=number,
                nodes=[sink_of(number)],
                inputs=count,
                outputs=count,
            )
            for split, count in enumerate(source.counts)
        ]
    if ended is not None:
        told.append(event(contract.APPLICATION_ENDED, time=ended))
    store = DeltaFlowStore(folder / "flows")
    store.write_events(event_batch("group/node-0", messages(*told)))
    return LineageQueries(store, time_budget_s=30)

"""Applications for tests that read files: what the store holds of a job, without the job."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lineage_service.decode.batches import event_batch, flow_batch
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from tests.support.lineage_messages import APP, block, event, messages

#: The source, what maps its records, and the sink; each record of one is that of the next.
SOURCE, MAP, SINK, TAKE = 0, 1, 2, 3


def splits_of(path: Path | str, *starts: int, size: int | None = None) -> list[dict[str, Any]]:
    """The partitions of a text source, as the agent says them of a file as it is now.

    With `size`, of a file that the driver could not see.
    """
    status = Path(path).stat() if size is None else None
    whole = status.st_size if status is not None else size or 0
    bounds = [*(starts or (0,)), whole]
    return [
        {
            "split": split,
            "path": str(path),
            "start": start,
            "length": bounds[split + 1] - start,
            "size": status.st_size if status is not None else None,
            "modified": status.st_mtime_ns // 1_000_000 if status is not None else None,
        }
        for split, start in enumerate(bounds[:-1])
    ]


def questions_of(
    folder: Path,
    partitions: Sequence[Mapping[str, Any]],
    counts: Sequence[int],
    *,
    written: Sequence[Mapping[str, Any]] = (),
    name: str = "textFile",
    format: str = "text",
    detailed: bool = False,
    values_sample: float = 1.0,
    values: Mapping[int, Sequence[tuple[str, str]]] | None = None,
    keys: Mapping[int, Sequence[tuple[str, str]]] | None = None,
    manifest: Mapping[str, int] | None = None,
    ended: int | None = None,
    time_budget_s: float = 30.0,
    taken: int | None = None,
) -> LineageQueries:
    """Of a job that read `partitions` of so many records each, mapped and collected them.

    With `taken` it began with an action that took so many of the first partition, and read no more.
    `values` and `keys` are the texts of the map's records, by split; `ended` is in Unix milliseconds. With
    `written`, partitions of the sink, it wrote them in the format that it read.
    """
    store = DeltaFlowStore(folder / "flows")
    texts = [
        (split, kind, list(given))
        for kind, by_split in ((contract.VALUES, values), (contract.KEYS, keys))
        for split, given in (by_split or {}).items()
    ]
    blocks = [
        block(100 + split, at, kind, {"text": given}, node=MAP, split=split)
        for at, (split, kind, given) in enumerate(texts)
    ]
    dataset = {"namespace": "file", "name": "input", "format": format}
    told = [
        event(contract.APPLICATION_STARTED, name="job", detailed=detailed, values_sample=values_sample),
        event(
            contract.NODE_REGISTERED,
            node=SOURCE,
            name=name,
            kind="source",
            relation=contract.SOURCE,
            exact=True,
            dataset=dataset,
        ),
        event(contract.NODE_REGISTERED, node=MAP, name="map", exact=True),
        event(
            contract.NODE_REGISTERED,
            node=SINK,
            name="collect",
            kind="sink",
            exact=True,
            dataset=dataset if written else None,
        ),
        event(contract.LINK, source=SOURCE, target=MAP),
        event(contract.LINK, source=MAP, target=SINK),
        event(contract.PARTITIONS, node=SOURCE, partitions=[dict(partition) for partition in partitions]),
        event(contract.PARTITIONS, node=SINK, partitions=[dict(each) for each in written]),
        *([] if taken is None else _take(taken)),
        *(
            event(
                contract.RUN_COMMITTED,
                run=100 + split,
                split=split,
                action=SINK,
                input=SOURCE,
                nodes=[MAP, SINK],
                inputs=count,
                outputs=count,
                **{"blocks": sum(text[0] == split for text in texts), **(manifest or {})},
            )
            for split, count in enumerate(counts)
        ),
        event(contract.APPLICATION_ENDED, time=time.time_ns() // 1_000_000 if ended is None else ended),
    ]
    store.write_events(event_batch("group/node-0", messages(*told)))
    if blocks:
        store.write_flows(flow_batch("group/flow-0", messages(*blocks)))
    return LineageQueries(store, time_budget_s=time_budget_s)


def _take(count: int) -> list[Any]:
    """What an action sends that takes the first records of the map."""
    return [
        event(contract.NODE_REGISTERED, node=TAKE, name="take", kind="sink", exact=True),
        event(contract.LINK, source=MAP, target=TAKE),
        event(
            contract.RUN_COMMITTED,
            run=99,
            split=0,
            action=TAKE,
            input=SOURCE,
            nodes=[MAP, TAKE],
            inputs=count,
            outputs=count,
            blocks=0,
        ),
    ]


__all__ = ["APP", "MAP", "SINK", "SOURCE", "questions_of", "splits_of"]

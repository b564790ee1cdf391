"""An application whose one output row comes from very many input rows, as the agent would tell it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lineage_service.decode.batches import event_batch, flow_batch
from lineage_service.store.flow_store import DeltaFlowStore
from spark_agent import contract
from tests.support.file_applications import splits_of
from tests.support.lineage_messages import block, event, messages

MANY = "many-sources"
#: The nodes that people see: a file is read, all its rows become one group, the group is written.
SOURCE, GROUP, SINK = 0, 3, 4
_MAP_SIDE, _SHUFFLE = 1, 2
_WRITER, _READER = 1, 100


def tell(store: DeltaFlowStore, folder: Path, sources: int) -> None:
    """Write it into the store, and its files into the folder. One row is far from the others."""
    rows, sums = folder / "readings.csv", folder / "sums.csv"
    readings = [f"station {row % 100},{row % 43}" for row in range(sources)]
    readings[500] = "station 0,1048"
    rows.write_text("".join(f"{reading}\n" for reading in readings))
    sums.write_text("all stations,1048\n")
    spans = {"count": [sources], "in": [0], "step": [1], "run": [_WRITER]}
    gather = {"count": [sources], "in": list(range(sources))}
    blocks = [
        block(_READER, 0, contract.SPANS, spans, application_id=MANY, node=_SHUFFLE),
        block(_READER, 1, contract.GATHER, gather, application_id=MANY, node=GROUP),
    ]
    store.write_events(event_batch("many/events-0", messages(*_events(rows, sums, sources))))
    store.write_flows(flow_batch("many/flows-0", messages(*blocks)))


def _events(rows: Path, sums: Path, sources: int) -> Iterator[bytes]:
    def told(event_type: str, **fields: object) -> bytes:
        return event(event_type, application_id=MANY, time=1_732_300_000_000, **fields)

    def file(path: Path) -> dict[str, str]:
        return {"namespace": "file", "name": str(path), "format": "text"}

    yield told(contract.APPLICATION_STARTED, name="Many sources")
    for number, name, kind, relation, more in (
        (SOURCE, "textFile", "source", contract.SOURCE, {"dataset": file(rows)}),
        (_MAP_SIDE, "map side", "step", contract.IDENTITY, {}),
        (_SHUFFLE, "shuffle", "step", contract.FLOWS, {}),
        (GROUP, "groupByKey", "operator", contract.FLOWS, {}),
        (SINK, "saveAsTextFile", "sink", contract.IDENTITY, {"dataset": file(sums)}),
    ):
        yield told(
            contract.NODE_REGISTERED,
            node=number,
            name=name,
            kind=kind,
            relation=relation,
            exact=True,
            **more,
        )
    for number in range(SINK):
        yield told(contract.LINK, source=number, target=number + 1, port=0)
    yield told(contract.PARTITIONS, node=SOURCE, partitions=splits_of(rows))
    yield told(contract.PARTITIONS, node=SINK, partitions=splits_of(sums))
    yield told(
        contract.RUN_COMMITTED,
        run=_WRITER,
        split=0,
        input=SOURCE,
        nodes=[_MAP_SIDE],
        blocks=0,
        inputs=sources,
        outputs=sources,
    )
    yield told(
        contract.RUN_COMMITTED,
        run=_READER,
        split=0,
        input=_SHUFFLE,
        nodes=[GROUP, SINK],
        action=SINK,
        blocks=2,
        inputs=sources,
        outputs=1,
    )
    yield told(contract.APPLICATION_ENDED)

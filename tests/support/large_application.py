"""An application of hundreds of operations, as the agent would tell it: for what must stay usable then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lineage_service.decode.batches import event_batch, flow_batch
from lineage_service.store.flow_store import DeltaFlowStore
from spark_agent import contract
from tests.support.lineage_messages import block, event, messages

LARGE = "five-hundred-operations"
STARTED_MS = 1_732_200_000_000
RECORDS = 40


def tell(store: DeltaFlowStore, rows: Path, *, operations: int = 500, a_stage: int = 20) -> None:
    """Write it into the store: a file read by maps, and after each `a_stage` of them a shuffle.

    Each fifth shuffle also reads what another stage has made. The file is written to `rows`.
    """
    rows.write_text("".join(f"row {row}\n" for row in range(RECORDS)))
    events = list(_events(rows, operations, a_stage))
    blocks = [
        block(
            _run(node),
            0,
            contract.SPANS,
            {"count": [RECORDS], "in": [0], "step": [1], "run": [_run(node - a_stage)]},
            application_id=LARGE,
            node=node,
        )
        for node in range(a_stage, operations, a_stage)
    ]
    store.write_events(event_batch("large/events-0", messages(*events)))
    store.write_flows(flow_batch("large/flows-0", messages(*blocks)))


def _run(node: int) -> int:
    return 1000 + node


def _events(rows: Path, operations: int, a_stage: int) -> Iterator[bytes]:
    def told(event_type: str, at: int = 0, **fields: Any) -> bytes:
        return event(event_type, application_id=LARGE, time=STARTED_MS + at, **fields)

    yield told(contract.APPLICATION_STARTED, name="Five hundred operations")
    for node in range(operations):
        is_shuffle = node > 0 and node % a_stage == 0
        kind, name, relation = "operator", f"map ({node})", contract.IDENTITY
        if node == 0:
            kind, name, relation = "source", "textFile", contract.SOURCE
        elif node == operations - 1:
            kind, name = "sink", "saveAsTextFile"
        elif is_shuffle:
            name, relation = "reduceByKey", contract.FLOWS
        yield told(
            contract.NODE_REGISTERED,
            node=node,
            name=name,
            kind=kind,
            relation=relation,
            exact=True,
            call_site=f"/jobs/large.py:{node + 10}",
            dataset={"namespace": "file", "name": str(rows), "format": "text"} if node == 0 else None,
        )
        if node > 0:
            yield told(contract.LINK, source=node - 1, target=node, port=0)
        if is_shuffle and node > 2 * a_stage and node // a_stage % 5 == 0:
            yield told(contract.LINK, source=node - 2 * a_stage - 1, target=node, port=1)
    size = rows.stat()
    split = {"split": 0, "path": str(rows), "start": 0, "length": size.st_size, "size": size.st_size}
    yield told(contract.PARTITIONS, node=0, partitions=[{**split, "modified": size.st_mtime_ns // 1_000_000}])
    for first in range(0, operations, a_stage):
        yield told(
            contract.RUN_COMMITTED,
            run=_run(first),
            split=0,
            action=operations - 1,
            input=first,
            nodes=list(range(first + 1, min(first + a_stage, operations))),
            inputs=RECORDS,
            outputs=RECORDS,
            blocks=0 if first == 0 else 1,
        )
    yield told(contract.APPLICATION_ENDED, 9_000)

"""A `MERGE` of a table that copied rows, updated one and deleted one: what its agent tells of it."""

from __future__ import annotations

import time
from pathlib import Path

from lineage_service.decode.batches import event_batch, flow_batch
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from tests.support.lineage_messages import block, event, messages

__all__ = ["DELETED", "GONE", "SOURCE", "WRITTEN", "merged"]

SOURCE, WRITTEN, DELETED = 0, 1, 2
GONE = "these rows were deleted: version 7 of /t is without them"


def merged(folder: Path) -> LineageQueries:
    """The statement copied the rows 0 and 2, updated row 1, and deleted row 3."""
    store = DeltaFlowStore(folder / "flows")
    dataset = {"namespace": "file", "name": "/t", "format": "delta"}
    nodes = [
        {"node": SOURCE, "name": "Scan", "kind": "source", "relation": contract.SOURCE, "dataset": dataset},
        {
            "node": WRITTEN,
            "name": "MERGE",
            "kind": "sink",
            "relation": contract.FLOWS,
            "dataset": dataset | {"operation": "copy"},
        },
        {
            "node": DELETED,
            "name": "MERGE: deleted rows",
            "kind": "sink",
            "relation": contract.FLOWS,
            "dataset": dataset | {"operation": "delete"},
            "reason": GONE,
        },
    ]
    flows = [
        block(1, 0, contract.POSITIONS, {"in": [0, 1, 2]}, node=WRITTEN),
        block(1, 1, contract.OPERATIONS, {"out": [1], "operation": [2]}, node=WRITTEN),
        block(2, 0, contract.POSITIONS, {"in": [3]}, node=DELETED),
    ]
    events = [
        event(contract.APPLICATION_STARTED, name="job", detailed=False),
        *(event(contract.NODE_REGISTERED, exact=True, **node) for node in nodes),
        event(contract.LINK, source=SOURCE, target=WRITTEN),
        event(contract.LINK, source=SOURCE, target=DELETED),
        *(
            event(
                contract.RUN_COMMITTED,
                run=run,
                split=0,
                action=node,
                input=SOURCE,
                nodes=[node],
                inputs=4,
                outputs=outputs,
                blocks=blocks,
            )
            for run, node, outputs, blocks in ((1, WRITTEN, 3, 2), (2, DELETED, 1, 1))
        ),
        event(contract.APPLICATION_ENDED, time=time.time_ns() // 1_000_000),
    ]
    store.write_events(event_batch("group/node-0", messages(*events)))
    store.write_flows(flow_batch("group/flow-0", messages(*flows)))
    return LineageQueries(store, time_budget_s=30.0)

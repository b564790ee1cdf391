"""What a statement of a table did with each row, in traces."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lineage_service.decode.batches import event_batch, flow_batch
from lineage_service.queries import TraceQuery
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from tests.support.lineage_messages import APP, block, event, messages

SOURCE, WRITTEN, DELETED = 0, 1, 2
GONE = "these rows were deleted: version 7 of /t is without them"


@pytest.fixture
def questions(tmp_path: Path) -> LineageQueries:
    """A statement that copied the rows 0 and 2, updated row 1, and deleted row 3."""
    store = DeltaFlowStore(tmp_path / "flows")
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


@pytest.mark.parametrize(
    ("row", "name", "operation", "reason"),
    [
        (0, "MERGE", "copy", ""),
        (1, "MERGE", "update", ""),
        (2, "MERGE", "copy", ""),
        (3, "MERGE: deleted rows", "delete", GONE),
    ],
)
def test_a_record_says_what_the_statement_did_with_it(
    questions: LineageQueries, row: int, name: str, operation: str, reason: str
) -> None:
    query = TraceQuery(direction="forward", node=str(SOURCE), partition=0, offset=row)
    trace = questions.trace(APP, query)
    assert (trace.complete, trace.exact) == (True, True)
    [node] = [node for node in trace.nodes if node.kind == "sink" and node.total]
    assert (node.name, [record.operation for record in node.records]) == (name, [operation])
    assert node.reason == reason

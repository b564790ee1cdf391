"""What a statement of a table did with each row, in traces."""

from __future__ import annotations

from pathlib import Path

import pytest

from lineage_service.queries import TraceQuery
from lineage_service.tracing.query.service import LineageQueries
from tests.support.lineage_messages import APP
from tests.support.tables.merged_rows import GONE, SOURCE, merged


@pytest.fixture
def questions(tmp_path: Path) -> LineageQueries:
    return merged(tmp_path)


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

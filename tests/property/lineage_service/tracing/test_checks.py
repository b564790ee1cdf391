"""A check is of the rows of an answer exactly where the sets are equal; else it says what differs."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lineage_service.tracing.explain.checks import checks_of
from lineage_service.tracing.walk.result import Position

ROWS = st.sets(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 5)), max_size=8)
RECORDS = st.sets(st.tuples(st.integers(5, 6), st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=3)


def answered(rows: set[tuple[int, int, int]]) -> dict[int, dict[int, Any]]:
    by_node: dict[int, dict[int, Any]] = {}
    for node, split, row in sorted(rows):
        offsets = by_node.setdefault(node, {})
        offsets[split] = np.append(offsets.get(split, np.empty(0, np.int64)), row)
    return by_node


@given(RECORDS, RECORDS, ROWS, ROWS, st.integers(0, 2))
def test_a_check_is_of_these_rows_only_if_the_sets_are_equal(
    asked: set[Any], checked: set[Any], listed: set[Any], ran: set[Any], run: int
) -> None:
    event = {
        "records": [{"node": node, "split": split, "position": at, "run": 1} for node, split, at in checked],
        "rows": [{"node": node, "split": split, "positions": [[row, 1]]} for node, split, row in sorted(ran)],
        "runs": 1,
        "added": 0,
        "minimal": False,
        "time": 5,
    }
    records = [Position(node, split, at, run) for node, split, at in asked]
    checks = checks_of([event], records, answered(listed))
    assert bool(checks) == (asked == checked and run == 1)
    for check in checks:
        assert check.is_of_these_rows == (listed == ran)
        added = {
            (node, split, row)
            for node, by_split in check.added.items()
            for split, offsets in by_split.items()
            for row in offsets.tolist()
        }
        assert added == ran - listed
        assert (check.added_total, check.left_out) == (len(ran - listed), len(listed - ran))
        assert check.total == len(ran)

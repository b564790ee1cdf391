"""Which row of a run stands in the place of another one, and where that is a guess."""

from __future__ import annotations

import pytest

from spark_agent.contract.row_counterparts import counterpart


@pytest.mark.parametrize(
    ("was", "before", "now", "text", "is_sure"),
    [
        ("a,5", ["a,5", "b,2"], ["b,2", "a,5"], "a,5", True),  # as it was
        ("a,5", ["a,5", "b,2"], ["a,3", "b,2"], "a,3", True),  # the same key
        ("a,5", ["a,5", "b,2"], ["b,2"], None, True),  # gone
        ("7,5", ["7,5", "8,2"], ["8,2"], None, True),  # another row of its form is none of it
        ("7,5", ["7,5", "8,2"], ["8,1"], None, False),  # two rows moved, and one of them is gone
        ("a,1,5", ["a,1,5", "a,2,7"], ["a,2,7"], None, True),  # a key of two fields
        ("a,1,5", ["a,1,5", "a,2,7"], ["a,1,4", "a,2,7"], "a,1,4", True),
        ("a,1,5", ["a,1,5", "a,2,7"], ["a,2,6"], "a,2,6", False),
        ("12.5", ["12.5"], ["11.0"], "11.0", True),  # one row in all
        ("12.5", ["12.5", "3"], ["11.0", "3"], None, False),
        ("a,0.3", ["a,0.3"], ["a,0.30000000000000004"], "a,0.30000000000000004", True),
        ("a,1", ["a,1", "b,0.3"], ["a,1", "b,0.30000000000000004"], "a,1", True),
        ("a,2", ["a,2", "b,0.3"], ["b,0.30000000000000004"], None, True),
        ("x", ["x", "x"], ["x"], None, True),  # one of two equal ones
        ("a,1", ["a,1"], [], None, True),
    ],
)
def test_a_row_and_what_stands_in_its_place(
    was: str, before: list[str], now: list[str], text: str | None, is_sure: bool
) -> None:
    assert counterpart(was, before, now) == (text, is_sure)


def test_many_rows_that_changed_are_not_compared_one_by_one() -> None:
    before, now = [f"{key},0.1" for key in range(1_000)], [f"{key},0.2" for key in range(1, 1_000)]
    assert counterpart("0,0.1", before, now) == (None, False)

"""Covers: all groups have what they lack, and the rows are few, compared with the fewest that there are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from spark_agent.contract.row_cover import Group, Row, covering

ROWS: list[Row] = [(0, 0, number) for number in range(7)]
PARTS = st.frozensets(st.sampled_from(ROWS), min_size=1, max_size=4)
GROUPS = st.lists(st.builds(Group, st.lists(PARTS, max_size=4).map(tuple), st.integers(1, 3)), max_size=5)


def is_served(groups: Sequence[Group], rows: set[Row]) -> bool:
    return all(
        sum(not part.isdisjoint(rows) for part in group.parts) >= min(group.demand, len(group.parts))
        for group in groups
    )


@settings(max_examples=150)
@given(GROUPS)
def test_no_group_lacks_anything_and_the_rows_are_nearly_the_fewest(groups: list[Group]) -> None:
    chosen = covering(groups)
    assert is_served(groups, chosen)
    fewest = next(
        size
        for size in range(len(ROWS) + 1)
        if any(is_served(groups, set(rows)) for rows in combinations(ROWS, size))
    )
    lacking = sum(min(group.demand, len(group.parts)) for group in groups)
    assert len(chosen) <= fewest * sum(1 / number for number in range(1, lacking + 1))
    assert chosen == covering(groups)

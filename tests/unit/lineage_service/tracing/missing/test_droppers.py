"""Which operators of plans may leave a row out, and which of them stand for another one."""

from __future__ import annotations

import pytest

from lineage_service.tracing.missing.droppers import Candidate, ends_ids, may_drop, without_doubles
from lineage_service.tracing.model.elements import TopologyNode

pytestmark = pytest.mark.unit


def operator(name: str, description: str = "", number: int = 1) -> TopologyNode:
    return TopologyNode(
        number=number,
        name=name,
        description=description,
        kind="operator",
        relation="carried",
        exact=True,
        reason="",
        call_site="",
        dataset=None,
        parents=(),
        partitions={},
    )


@pytest.mark.parametrize(
    ("kind", "left", "right"),
    [
        ("Inner", True, True),
        ("Cross", True, True),
        ("LeftOuter", False, True),
        ("RightOuter", True, False),
        ("FullOuter", False, False),
        ("LeftSemi", True, True),
        ("LeftAnti", True, True),
        ("ExistenceJoin(exists)", False, True),
    ],
)
def test_a_join_leaves_out_rows_of_the_sides_that_need_a_match(kind: str, left: bool, right: bool) -> None:
    join = operator("Join", f"{kind}, (a = b)")
    assert (may_drop(join, 0), may_drop(join, 1)) == (left, right)


def test_rows_that_only_say_which_others_come_out_are_named_by_none() -> None:
    assert [
        ends_ids(operator("Join", f"{kind}, (a = b)"), 1) for kind in ("LeftAnti", "LeftSemi", "Inner")
    ] == [
        True,
        True,
        False,
    ]
    assert not ends_ids(operator("Join", "LeftAnti, (a = b)"), 0)


@pytest.mark.parametrize("name", ["Project", "Sort", "Union", "Window", "Expand", "InMemoryRelation"])
def test_operators_that_give_each_row_on_leave_none_out(name: str) -> None:
    assert not may_drop(operator(name), 0)


@pytest.mark.parametrize("name", ["Filter", "GlobalLimit", "Sample", "Generate", "AnOperatorOfLaterYears"])
def test_all_others_may_also_those_that_are_not_known(name: str) -> None:
    assert may_drop(operator(name), 0)


def test_what_spark_made_of_a_limit_or_a_rank_stands_for_nothing_of_its_own() -> None:
    names = ["WindowGroupLimit", "LocalLimit", "Filter", "GlobalLimit", "LocalLimit"]
    candidates = [Candidate(operator(name, number=at)) for at, name in enumerate(names)]
    assert [(one.node.number, has_doubles) for one, has_doubles in without_doubles(candidates)] == [
        (2, True),
        (3, True),
        (4, False),
    ]

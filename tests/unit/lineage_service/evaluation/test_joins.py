"""Joins that are decided by the rows of their other side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from lineage_service.evaluation.expressions import Columns, Expression
from lineage_service.evaluation.joins import OtherRow
from lineage_service.evaluation.steps import Step, arrived, verdict_of
from lineage_service.evaluation.values import Unknown, Value

CUSTOMER, KEY, NAME = (
    {"column": at, "name": name} for at, name in ((1, "customer"), (2, "key"), (3, "name"))
)
SAME = {"of": "EqualTo", "inputs": [CUSTOMER, KEY]}
IS_ANN = {"condition": {"of": "EqualTo", "inputs": [NAME, {"type": "string", "value": "ann"}]}}
ROW = {1: Value("int", 5)}
NO_MATCH = "no row of the other side has key = 5"


@dataclass(frozen=True)
class Side:
    some: Sequence[OtherRow] | Unknown

    def rows(self, condition: Expression, columns: Columns) -> Sequence[OtherRow] | Unknown:
        return self.some


def row(key: int, name: str = "ann", *, is_sure: bool = True) -> OtherRow:
    return OtherRow({2: Value("int", key), 3: Value("string", name)}, is_sure)


def decided(kind: str, *rows: OtherRow, unknown: str = "") -> Any:
    """The verdict of a join and a filter behind it."""
    side = Side(Unknown(unknown) if unknown else rows)
    join = Step("Join", {"join": kind, "condition": SAME}, 0, side)
    return verdict_of([join, Step("Filter", IS_ANN)], ROW)


def test_a_join_without_a_match_is_the_one() -> None:
    verdict = decided("Inner", row(4), row(6, is_sure=False))
    assert (verdict.candidates, verdict.why) == ((0,), NO_MATCH)
    assert decided("LeftSemi").candidates == (0,)


def test_a_join_with_a_match_is_not_the_one() -> None:
    assert decided("Inner", row(5), row(5)).candidates == (1,)
    assert decided("LeftSemi", row(5, is_sure=False), row(5)).candidates == (1,)


def test_an_anti_join_is_the_one_where_there_is_a_match() -> None:
    verdict = decided("LeftAnti", row(5))
    assert (verdict.candidates, verdict.why) == ((0,), "a row of the other side has key = 5")
    assert decided("LeftAnti", row(4)).candidates == (1,)


def test_columns_of_the_only_match_are_known_behind_the_join() -> None:
    verdict = decided("Inner", row(5, "bo"))
    assert (verdict.candidates, verdict.why) == ((1,), "not name = 'ann', since name is 'bo'")
    assert decided("LeftOuter", row(5, "bo")).candidates == (1,)
    assert decided("Inner", row(5, "bo"), row(5, "cy", is_sure=False)).why == ""


@pytest.mark.parametrize("unsure", [row(5, is_sure=False), OtherRow({}, True)])
def test_a_row_that_may_not_have_come_decides_nothing(unsure: OtherRow) -> None:
    assert decided("Inner", unsure).candidates == (0, 1)
    assert decided("LeftAnti", unsure).candidates == (0, 1)


def test_why_the_other_side_is_not_known_is_said() -> None:
    verdict = decided("Inner", unknown="it has more than 50,000 rows")
    assert verdict.candidates == (0, 1)
    assert verdict.reason == (
        "what the other side of the join had is not known: it has more than 50,000 rows"
    )


def test_a_row_comes_to_a_join_if_no_operator_before_may_leave_it_out() -> None:
    columns = {2: Value("int", 5), 3: Value("string", "ann")}
    grouped = Step("Aggregate", {"keys": [KEY], "distinct": False})
    assert arrived([Step("Filter", IS_ANN), grouped], columns) == arrived([grouped], columns)
    assert arrived([grouped], columns).columns == {2: Value("int", 5)}
    assert arrived([Step("Filter", IS_ANN)], {3: Value("string", "bo")}).has_come is False
    assert arrived([Step("Filter", IS_ANN)], {}).has_come is None
    assert arrived([Step("Aggregate", None)], columns).has_come is None

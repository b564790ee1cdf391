"""Where conditions of a scan are evaluated: before its rows are numbered, or behind those that are kept."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from spark_agent.sql.catalyst import Operator
from spark_agent.sql.files.scans import FileScans
from spark_agent.sql.rewrite.operators.scans import filter_


@dataclass(frozen=True)
class Condition:
    """`reads` is the column that it reads."""

    reads: str = "amount"
    is_failing: bool = False
    is_repeatable: bool = True

    def deterministic(self) -> bool:
        return self.is_repeatable


SAFE, FAILING = Condition(), Condition(is_failing=True)
OF_FOLDER = Condition(reads="day", is_failing=True)
RANDOM = Condition(is_failing=True, is_repeatable=False)
NONE: Any = SimpleNamespace(of=lambda leaf, kind: None, rdd_node=lambda leaf, kind: None)


class Catalyst:
    """Plans are tuples: what is done, by what, and of which plan."""

    def __init__(self, *, knows_index: bool = True) -> None:
        self._knows_index = knows_index

    def conjuncts(self, conditions: list[Condition]) -> list[Condition]:
        return conditions

    def may_fail(self, condition: Condition) -> bool:
        return condition.is_failing

    def is_pushed_into_lines(self, condition: Condition) -> bool:
        return not condition.is_failing

    def names_read(self, condition: Condition) -> list[str]:
        return [condition.reads]

    def conf(self, plan: Any, name: str, default: str) -> str:
        return default

    def with_row_index(self, plan: Any) -> Any:
        return (("indexed", plan), "index") if self._knows_index else None

    def all_of(self, conditions: list[Condition]) -> tuple[Condition, ...]:
        return tuple(conditions)

    def filter(self, condition: Any, plan: Any) -> Any:
        return "filter", condition, plan

    def project_as(self, like: Any, plan: Any, more: Any) -> Any:
        return "number", plan

    def alias(self, expression: Any, name: str) -> Any:
        return SimpleNamespace(toAttribute=lambda: name)

    def is_positive(self, ids: str) -> str:
        return "kept"

    def is_other(self, ids: str, value: int) -> str:
        return "candidates"


def rewritten(
    conditions: list[Condition],
    *,
    is_kept: bool = True,
    has_candidates: bool = False,
    format: str = "ParquetFileFormat",
    options: dict[str, str] | None = None,
    knows_index: bool = True,
) -> tuple[Any, bool]:
    """The filter of a scan as it is rewritten, and whether its node says that it is prefiltered."""
    files: dict[str, Any] = {"format": format, "roots": ["/data/sales"], "count": 1, "options": options or {}}
    files |= {"folders": {"day": ""}, "is_bucketed": False, "version": None}
    leaf = Operator("LogicalRelation", "Relation", "", [], False, True, files)
    catalyst: Any = Catalyst(knows_index=knows_index)
    node = SimpleNamespace(number=0, is_prefiltered=False, expressions=None)
    kept = SimpleNamespace(hasCandidates=lambda: has_candidates) if is_kept else None
    walk: Any = SimpleNamespace(
        look=lambda plan: leaf,
        interleaved=0,
        is_of_branch=False,
        root=None,
        catalyst=catalyst,
        scans=FileScans(catalyst, NONE, NONE, NONE),
        nodes=SimpleNamespace(is_replaying=True, operator=lambda *_, **__: node),
        taps=SimpleNamespace(kept=lambda *_: kept, source=lambda *_, **__: "ids"),
        tapped_subqueries=lambda plan: (plan, []),
        over=lambda plan, below, filtered, groups: filtered,
    )
    plan = SimpleNamespace(child=lambda: "files", condition=lambda: conditions)
    return filter_(walk, plan), node.is_prefiltered


INDEXED = ("indexed", "files")


def test_a_condition_that_may_fail_is_evaluated_behind_the_rows_that_are_kept() -> None:
    pushed = ("number", ("filter", (SAFE,), INDEXED))
    assert rewritten([FAILING, SAFE]) == (("filter", (FAILING,), ("filter", "kept", pushed)), False)
    candidates = ("filter", "kept", ("filter", "candidates", pushed))
    assert rewritten([SAFE, FAILING], has_candidates=True)[0] == ("filter", (FAILING,), candidates)


def test_where_no_rows_are_dropped_it_is_pushed() -> None:
    plan, is_prefiltered = rewritten([FAILING, SAFE], is_kept=False)
    assert plan == ("number", ("filter", (FAILING, SAFE), INDEXED))
    assert is_prefiltered


@pytest.mark.parametrize("condition", [SAFE, OF_FOLDER, RANDOM])
def test_what_does_not_fail_on_a_row_or_depends_on_other_rows_is_pushed(condition: Condition) -> None:
    assert rewritten([condition])[0] == ("filter", "kept", ("number", ("filter", (condition,), INDEXED)))


def test_where_rows_are_known_by_their_order_conditions_stay_where_they_are() -> None:
    pushed = ("filter", "kept", ("number", ("filter", (FAILING,), "files")))
    assert rewritten([FAILING], knows_index=False)[0] == pushed
    plan, _ = rewritten([FAILING, SAFE], format="CSVFileFormat", options={"mode": "FAILFAST"})
    numbered = ("number", ("filter", (SAFE,), "files"))
    assert plan == ("filter", (FAILING,), ("filter", "kept", numbered))

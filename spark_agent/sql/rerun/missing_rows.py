"""Where a row of an input ended in a query, found by asking the query's plan again for that one row.

The scan of the row's file is replaced by the row alone; all other scans stay whole. From there upwards, each
operator is asked whether it gives a row that is made of it; the first one that does not is where it ended.
Where rows meet, what they meet is computed again: a group is that of all rows with its key. What may choose
otherwise when it runs again (a limit, a sample, ties of a window) is named, and the answer is not exact then.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.rerun.join_sides import JoinSides
from spark_agent.sql.rerun.rerunnable_plan import adds_up_floats, is_by_order, why_differs
from spark_agent.sql.rewrite.descriptions import described
from spark_agent.sql.types import Expression, Plan

Asks = Callable[[Plan, int], list[Any]]
"""A plan -> at most so many of its rows. The query is no part of the job."""

#: Operators whose rows are each made of one row of their only input.
_OF_ONE_ROW = frozenset(
    (
        *("Project", "Filter", "Generate", "Expand", "BatchEvalPython", "ArrowEvalPython", "TypedFilter"),
        *("SubqueryAlias", "View", "ResolvedHint"),
    )
)
#: They give all rows of their input, or less of them as the operator above does too.
_MOVING = frozenset(
    (
        *("Sort", "Repartition", "RepartitionByExpression", "RebalancePartitions", "LimitAll", "LocalLimit"),
        *("WindowGroupLimit", "CollectMetrics"),
    )
)
#: They choose rows by the order in which these come, or by chance.
_CHOOSING = frozenset(("GlobalLimit", "Offset", "Tail", "Sample"))
#: Rows of one input that are looked at together.
MOST_ROWS = 1_000


class CannotFollowError(Exception):
    """The row cannot be followed past an operator; the text says why."""


@dataclass(frozen=True)
class Passed:
    """An operator in words, and what it did with the row."""

    name: str
    description: str
    call_site: str
    why: str


@dataclass(frozen=True)
class RowEnd:
    """The operator at which a row ended; None: it did not, as far as is known.

    `duplicates` are operators at which it was one of several equal rows.
    """

    operator: Plan | None
    name: str = ""
    description: str = ""
    call_site: str = ""
    why: str = ""
    doubts: tuple[str, ...] = ()
    duplicates: tuple[Passed, ...] = ()


class _EndedError(Exception):
    def __init__(self, operator: Plan, why: str) -> None:
        super().__init__(why)
        self.operator, self.why = operator, why


@dataclass
class RowWalk:
    """One row of one scan. `scan` is the leaf, `row` a plan of the row alone with the same columns."""

    catalyst: Catalyst
    ask: Asks
    scan: Plan
    row: Plan
    doubts: dict[str, None] = field(default_factory=dict)
    duplicates: list[Passed] = field(default_factory=list)

    def end(self, query: Plan) -> RowEnd:
        """Raises CannotFollowError."""
        self._columns = self.catalyst.column_ids(self.scan)
        self._joins = JoinSides(self.catalyst)
        try:
            self._made(query)
        except _EndedError as ended:
            at = self._passed(ended.operator, ended.why)
            return RowEnd(ended.operator, at.name, at.description, at.call_site, at.why, tuple(self.doubts))
        return RowEnd(None, doubts=tuple(self.doubts), duplicates=tuple(self.duplicates))

    def _passed(self, operator: Plan, why: str) -> Passed:
        look = self.catalyst.look(operator)
        return Passed(look.name, described(look.text, look.name), ", ".join(look.call_sites), why)

    def _made(self, plan: Plan) -> Plan:
        """What a part of the query gives that is made of the row. Raises _EndedError for nothing."""
        if self._is_scan(plan):
            return self.row
        side, below = self._below(plan)
        rows = self._through(plan, side, below)
        if not self._has_rows(rows):
            raise _EndedError(plan, self._why(plan, side, below))
        return rows

    def _is_scan(self, plan: Plan) -> bool:
        return bool(plan.children().isEmpty()) and self.catalyst.column_ids(plan) == self._columns

    def _below(self, plan: Plan) -> tuple[int, Plan]:
        for side, child in enumerate(self.catalyst.items(plan.children())):
            if any(self._is_scan(leaf) for leaf in self.catalyst.items(child.collectLeaves())):
                return side, self._made(child)
        raise CannotFollowError("it is read in a subquery, which gives one value of many rows")

    def _has_rows(self, plan: Plan) -> bool:
        return bool(self.ask(plan, 1))

    # -- operators -----------------------------------------------------------------------------------

    def _through(self, plan: Plan, side: int, below: Plan) -> Plan:
        kind = self.catalyst.kind(plan)
        for subquery in self.catalyst.items(plan.subqueries()):
            self._doubt(why_differs(self.catalyst, subquery))
        if kind in _MOVING:
            return below
        if kind in _CHOOSING:
            self._doubt(f"{plan.nodeName()} may have left it out: which rows it takes is not known")
            return below
        if kind in _OF_ONE_ROW:
            if not plan.deterministic():
                self._doubt(f"not all of {plan.nodeName()} gives the same again")
            return self.catalyst.with_children(plan, [below])
        through = {
            "Join": self._join,
            "Union": self._union,
            "Aggregate": self._aggregate,
            "Window": self._window,
        }.get(kind)
        if through is None:
            raise CannotFollowError(f"{plan.nodeName()} cannot be followed for one row")
        return through(plan, side, below)

    def _doubt(self, reason: str) -> None:
        if reason:
            self.doubts[reason] = None

    def _join(self, plan: Plan, side: int, below: Plan) -> Plan:
        self._doubt(why_differs(self.catalyst, plan.left() if side else plan.right()))
        rows = self._joins.of_row(plan, side, below)
        if rows is None:
            raise _EndedError(
                plan, "rows of this side are in no output: they only decide about rows of the other side"
            )
        return rows

    def _union(self, plan: Plan, side: int, below: Plan) -> Plan:
        columns = zip(self.catalyst.items(below.output()), self.catalyst.items(plan.output()), strict=True)
        return self.catalyst.project(
            [self.catalyst.alias_as(column, united) for column, united in columns], below
        )

    def _aggregate(self, plan: Plan, side: int, below: Plan) -> Plan:
        """The groups of the row, of all rows that they have."""
        if adds_up_floats(self.catalyst, plan):
            self._doubt("sums of floating-point numbers may differ in their last digits")
        if not plan.deterministic():
            self._doubt("an aggregate takes a value of any of its rows")
        keys = self.catalyst.items(plan.groupingExpressions())
        rows = self._with_keys(plan.child(), keys, below)
        look = self.catalyst.look(plan)
        if (look.expressions or {}).get("distinct"):
            count = len(self.ask(rows, MOST_ROWS))
            if count > 1:
                total = f"{count:,}{' or more' if count == MOST_ROWS else ''}"
                same = f"had the same {', '.join(map(_readable, keys))}"
                alike = same if "first(" in look.text else "were equal"
                why = f"distinct: {total} rows {alike} here, and one row stands for all of them"
                self.duplicates.append(self._passed(plan, why))
        return self.catalyst.with_children(plan, [rows])

    def _window(self, plan: Plan, side: int, below: Plan) -> Plan:
        """The rows like the row, in the window over its whole partition."""
        if any(map(is_by_order, self.catalyst.items(plan.windowExpressions()))):
            self._doubt("a window by the order of rows may take tied rows in another order")
        if adds_up_floats(self.catalyst, plan):
            self._doubt("sums of floating-point numbers may differ in their last digits")
        whole = self._with_keys(plan.child(), self.catalyst.items(plan.partitionSpec()), below)
        window = self.catalyst.with_children(plan, [whole])
        alike = self._with_keys(window, self.catalyst.items(plan.child().output()), below)
        if len(self.ask(alike, MOST_ROWS)) != len(self.ask(below, MOST_ROWS)):
            self._doubt("other rows have the same values, and cannot be told from it")
        return alike

    def _with_keys(self, plan: Plan, keys: list[Expression], below: Plan) -> Plan:
        """The rows of `plan` in which the keys are what they are in one of `below`, null too."""
        if not keys:
            return plan
        catalyst = self.catalyst
        named = [catalyst.alias(key, f"lineage_{at}") for at, key in enumerate(keys)]
        pairs = [
            catalyst.same(_bare(catalyst, key), column.toAttribute())
            for key, column in zip(keys, named, strict=True)
        ]
        return self._joins.meeting(plan, catalyst.project(named, below), catalyst.all_of(pairs))

    # -- reasons -------------------------------------------------------------------------------------

    def _why(self, plan: Plan, side: int, below: Plan) -> str:
        kind = self.catalyst.kind(plan)
        if kind == "Filter":
            return self._denied(plan, below)
        if kind == "Join":
            return self._unmet(plan, side, below)
        return ""

    def _denied(self, plan: Plan, below: Plan) -> str:
        """The first part of a condition that no row meets."""
        conditions = self.catalyst.conjuncts(plan.condition())
        for condition in conditions if len(conditions) > 1 else ():
            if not condition.deterministic() or not self._has_rows(self.catalyst.filter(condition, below)):
                return _denial(_readable(condition))
        return _denial(_readable(plan.condition()))

    def _unmet(self, plan: Plan, side: int, below: Plan) -> str:
        keys = self.catalyst.equi_join_keys(plan)
        is_anti = str(plan.joinType().toString()) == "LeftAnti"
        if keys is None or not keys[0]:
            return "no row of the other side meets the condition" if not is_anti else ""
        own, others = (keys[0], keys[1]) if side == 0 else (keys[1], keys[0])
        texts = [self.catalyst.alias(self.catalyst.text(key), f"lineage_{at}") for at, key in enumerate(own)]
        rows = self.ask(self.catalyst.project(texts, below), 2)
        if len(rows) != 1:
            return "no row of the other side meets the condition" if not is_anti else ""
        pairs = [
            f"{_readable(other)} = {'null' if rows[0].isNullAt(at) else rows[0].getUTF8String(at)}"
            for at, other in enumerate(others)
        ]
        rest = "" if keys[2] else " and meets the rest of the condition"
        return f"{'a' if is_anti else 'no'} row of the other side has {' and '.join(pairs)}{rest}"


def _bare(catalyst: Catalyst, key: Expression) -> Expression:
    return key.child() if catalyst.kind(key) == "Alias" else key


def _denial(condition: str) -> str:
    match = _NOT_NULL.fullmatch(condition)
    return f"not {condition}" if match is None else f"{match[1]} is null"


_NOT_NULL = re.compile(r"(\w+) IS NOT NULL")


def _readable(expression: Expression) -> str:
    return described(str(expression.toString()), "")

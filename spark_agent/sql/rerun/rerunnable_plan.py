"""The plan that gives one row of an output again: the query's own, without what may choose otherwise now.

Rows of a plan can be found by their values only where running it again gives the same rows. What depends on
the order in which rows come (a limit, a sample, a row number) or on chance is taken off the top of the plan:
what is left gives the rows of the output and perhaps others, and whoever finds exactly one with the values of
a row has found that row. Below an operator where rows meet it cannot be taken off; such a plan is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.files.input_state import parts_of
from spark_agent.sql.types import Expression, Plan, Seq

#: Each of their rows is one of their input's, in another order or place: above all others they can go.
_MOVING = frozenset(
    (
        "Sort",
        "Repartition",
        "RepartitionByExpression",
        "RebalancePartitions",
        "LimitAll",
        "SubqueryAlias",
        "View",
    )
)
#: They choose among rows by the order in which these come.
_CHOOSING = frozenset(("GlobalLimit", "LocalLimit", "Offset", "Tail", "Sample"))
#: They choose one row of several, whichever comes first.
_CHOOSING_ONE = frozenset(("Deduplicate", "DeduplicateWithinWatermark"))
#: What a window says of itself if it gives tied rows the same, in whatever order these come.
_FAIR = (
    "rank(",
    "dense_rank(",
    "percent_rank(",
    "cume_dist(",
    "rowframe, unboundedpreceding$(), unboundedfollowing$()",
)
#: Aggregates of floating point numbers that do not depend on the order of rows.
_ORDERLESS = ("MIN(", "MAX(", "COUNT(")
_FLOATING = frozenset(("double", "float"))
#: They run nothing of the user's, who would see it run twice, and count nothing for him.
_WITHOUT_EFFECTS = _MOVING | {
    "Aggregate",
    "Expand",
    "Filter",
    "Generate",
    "HiveTableRelation",
    "Join",
    "LocalRelation",
    "LogicalRelation",
    "OneRowRelation",
    "Project",
    "Range",
    "Union",
    "Window",
    "WindowGroupLimit",
}


class NotRepeatableError(Exception):
    """Running the query again need not give the same rows; the text names why."""


@dataclass(frozen=True)
class Candidates:
    """A plan with the columns of the query, in their order, that gives at least the query's rows.

    `unstable` are the positions of columns whose values may differ when it runs again.
    """

    plan: Plan
    unstable: frozenset[int]


def candidates_of(catalyst: Catalyst, query: Plan) -> Candidates:
    """Raises NotRepeatableError."""
    plan, unstable = _Shaping(catalyst).top(repeatable(catalyst, query))
    columns = catalyst.column_ids(query)
    return Candidates(plan, frozenset(at for at, column in enumerate(columns) if column in unstable))


def repeatable(catalyst: Catalyst, query: Plan) -> Plan:
    """The query without what it owes to caches, and to what Spark adds to read less.

    Raises NotRepeatableError where it is not known what was cached.
    """
    return _unpruned(catalyst, _uncached(catalyst, query))


def why_differs(catalyst: Catalyst, plan: Plan) -> str:
    """Why a plan may give other rows when it is computed again; empty where it gives the same."""
    shaping = _Shaping(catalyst)
    try:
        for part in parts_of(catalyst, plan):
            shaping.check_alone(part)
    except NotRepeatableError as error:
        return str(error)
    return ""


def are_same_again(catalyst: Catalyst, plan: Plan) -> bool:
    """Does a plan give the same rows when it is computed twice, to the last bit, and do nothing else?"""
    shaping = _Shaping(catalyst)
    try:
        for part in parts_of(catalyst, _uncached(catalyst, plan)):
            shaping.check_alone(part)
            is_quiet = catalyst.kind(part) in _WITHOUT_EFFECTS
            if not is_quiet or adds_up_floats(catalyst, part):
                return False
    except NotRepeatableError:
        return False
    return True


def adds_up_floats(catalyst: Catalyst, part: Plan) -> bool:
    """Does it compute from floating point numbers of several rows, in whatever order these come?"""
    if catalyst.kind(part) not in ("Aggregate", "Window"):
        return False
    types = [str(column.dataType().catalogString()) for column in catalyst.references(part, part.child())]
    return any(name in type_name for type_name in types for name in _FLOATING)


class _Shaping:
    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst

    def top(self, plan: Plan) -> tuple[Plan, set[int]]:
        """The plan without what chooses at its top, and the ids of its columns that are not stable."""
        kind = self._catalyst.kind(plan)
        self._check_all(plan.subqueries())
        if kind in _MOVING or kind in _CHOOSING:
            return self.top(plan.child())
        if kind == "Project":
            below, unstable = self.top(plan.child())
            columns = self._catalyst.items(plan.projectList())
            own = {_id(column) for column in columns if self._is_unstable(column, unstable)}
            return self._catalyst.project(columns, below), own
        if kind == "Filter":
            return self._top_filter(plan)
        self._check_all(plan.children())
        if kind == "Aggregate":
            return plan, self._unstable_results(plan.aggregateExpressions(), _is_sum)
        if kind == "Window":
            return plan, self._unstable_results(plan.windowExpressions(), is_by_order)
        self.check_alone(plan)
        return plan, set()

    def _top_filter(self, plan: Plan) -> tuple[Plan, set[int]]:
        below, unstable = self.top(plan.child())
        conditions = self._catalyst.conjuncts(plan.condition())
        stable = [condition for condition in conditions if not self._is_unstable(condition, unstable)]
        if len(stable) < len(conditions) and not plan.subqueries().isEmpty():
            raise NotRepeatableError("a filter by a subquery and by what differs each time")
        condition = self._catalyst.all_of(stable)
        return (below if condition is None else self._catalyst.filter(condition, below)), unstable

    def _unstable_results(self, results: Seq, is_unstable: Callable[[Expression], bool]) -> set[int]:
        return {
            _id(result)
            for result in self._catalyst.items(results)
            if self._is_unstable(result, set()) or is_unstable(result)
        }

    def _check_all(self, plans: Seq) -> None:
        for plan in self._catalyst.items(plans):
            self._check(plan)

    def _check(self, plan: Plan) -> None:
        for part in parts_of(self._catalyst, plan):
            self.check_alone(part)

    def check_alone(self, part: Plan) -> None:
        """Raises NotRepeatableError for an operator that may choose other rows."""
        name = self._catalyst.kind(part)
        if name in _CHOOSING or name in _CHOOSING_ONE:
            raise NotRepeatableError(f"{part.nodeName()}, below other operators, may choose other rows")
        if name == "Window" and any(map(is_by_order, self._catalyst.items(part.windowExpressions()))):
            raise NotRepeatableError("a window by the order of rows, below other operators, may differ")
        if name == "InMemoryRelation":
            raise NotRepeatableError("a cached DataFrame within a subquery")
        if not part.deterministic():
            described = str(part.simpleString(10))[:200]
            raise NotRepeatableError(f"not all in it gives the same again: {described}")

    def _is_unstable(self, expression: Expression, below: set[int]) -> bool:
        if not expression.deterministic():
            return True
        return bool(self._catalyst.column_ids_read(expression) & below)


def _id(named: Any) -> int:
    return int(named.exprId().id())


def _is_sum(result: Expression) -> bool:
    """Does it depend on the order in which floating point numbers are added?"""
    if str(result.dataType().catalogString()) not in _FLOATING:
        return False
    text = str(result.sql()).upper()
    return "(" in text and not text.startswith(_ORDERLESS)


def is_by_order(window: Expression) -> bool:
    """Does what a window gives to tied rows depend on which comes first?"""
    text = str(window.toString()).lower()
    return "rowframe" in text and not any(frame in text for frame in _FAIR)


def _uncached(catalyst: Catalyst, plan: Plan) -> Plan:
    """With what stands behind each cached DataFrame: the cache itself was filled without ids."""
    name = catalyst.kind(plan)
    if name == "InMemoryRelation":
        behind = catalyst.behind_cache(plan)
        if behind is None:
            raise NotRepeatableError("a cached DataFrame: what was cached is not known before Spark 4.0")
        recomputed = _uncached(catalyst, behind)
        columns = zip(catalyst.items(recomputed.output()), catalyst.items(plan.output()), strict=True)
        return catalyst.project([catalyst.alias_as(column, cached) for column, cached in columns], recomputed)
    if name == "LogicalRelation":
        return catalyst.unlike_cached(plan)
    children = catalyst.items(plan.children())
    if not children:
        return plan
    return catalyst.with_children(plan, [_uncached(catalyst, child) for child in children])


def _unpruned(catalyst: Catalyst, plan: Plan) -> Plan:
    """Without what Spark adds to read less: it adds it again, for what is run again."""
    if catalyst.kind(plan) == "WindowGroupLimit":  # the filter above the window stays
        return _unpruned(catalyst, plan.child())

    def certain(part: Expression) -> Expression | None:
        name = catalyst.kind(part)
        if name == "DynamicPruningSubquery" or (
            name == "BloomFilterMightContain" or "might_contain" in str(part.prettyName())
        ):
            return catalyst.true
        return None

    children = catalyst.items(plan.children())
    if children:
        plan = catalyst.with_children(plan, [_unpruned(catalyst, child) for child in children])
    is_pruning = catalyst.kind(plan) == "Filter" and not plan.subqueries().isEmpty()
    return catalyst.transformed(plan, certain) if is_pruning else plan

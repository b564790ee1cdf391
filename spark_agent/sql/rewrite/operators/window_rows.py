"""What tells the rows of a window from each other: the ids of what they were made of.

Where operators below make several rows of one, these have the same ids; then all that a window's order and
partitions depend on tells them apart, except rows that are tied.
"""

from __future__ import annotations

from spark_agent.sql.catalyst import is_hashable
from spark_agent.sql.rewrite.plan_walk import Ids, Walk
from spark_agent.sql.types import Expression, Plan

#: Rows of these may have the ids of other rows, or no ids at all.
_REPEATING = frozenset(
    (
        "Generate",
        "Expand",
        "MapInPandas",
        "MapInArrow",
        "PythonMapInArrow",
        "MapPartitions",
        "ScriptTransformation",
        "FlatMapGroupsInPandas",
        "FlatMapGroupsInArrow",
        "FlatMapCoGroupsInPandas",
        "FlatMapCoGroupsInArrow",
        "CTERelationRef",
        "OneRowRelation",
    )
)


def may_repeat(walk: Walk, plan: Plan) -> bool:
    """May several rows of a plan have the same ids?"""
    kind = walk.look(plan).kind
    if kind == "Aggregate" and not walk.copies:
        grouping = plan.groupingExpressions()
        return int(walk.catalyst.without_sessions(grouping).size()) < int(grouping.size())
    if kind in _REPEATING or walk.copies or (kind == "Sample" and bool(plan.withReplacement())):
        return True
    return any(may_repeat(walk, child) for child in walk.catalyst.items(plan.children()))


def row_key(walk: Walk, plan: Plan, ids: Ids, *, is_repeated: bool) -> Expression | None:
    """A number that is the same for rows of a window with the same ids, and no others.

    With `is_repeated` they are of one partition and tied, too. None where that cannot be had. What windows
    have added follows from the row. It may itself be the hash of the other ids, and such a hash must not go
    into a hash behind them: the two would cancel each other.
    """
    columns = [column for column, _ in reversed(ids) if id(column) not in walk.window_columns]
    if not is_repeated and len(columns) == 1 and not bool(columns[0].nullable()):
        return columns[0]
    if is_repeated:
        columns += walk.catalyst.items(plan.partitionSpec())
        columns += [order.child() for order in walk.catalyst.items(plan.orderSpec())]
        if not all(map(is_hashable, walk.catalyst.types(columns))):
            return None
    return walk.catalyst.key(columns)

"""Aggregates: each group is made of the rows with its key."""

from __future__ import annotations

from spark_agent.sql.rewrite.plan_walk import Handler, Rewritten, Walk
from spark_agent.sql.types import Plan

#: Columns that Spark makes of the conditions of aggregates of one input, to read it once.
_MERGED = "propagatedFilter"


def aggregate(walk: Walk, plan: Plan) -> Rewritten:
    below = walk.child(plan)
    if any(walk.catalyst.is_copy(plan, outer) for outer in walk.outers):
        # The rows of the query around a subquery, once more: they only say what it is computed for.
        walk.copies += 1
        copy = walk.catalyst.with_children(plan, [walk.catalyst.project_as(plan.child(), below.plan)])
        return Rewritten(copy, [], walk.operator(plan, [below.node]).number)
    own, subqueries = walk.tapped_subqueries(plan)
    node = walk.operator(plan, [below.node, *(group.operator for group in subqueries)])
    grouping = own.groupingExpressions()
    keys = walk.catalyst.without_sessions(grouping)
    if keys.size() < grouping.size():
        node.exact = False
        node.reason = "sessions are not told apart: what came with the same other keys is given"
    results = walk.catalyst.items(own.aggregateExpressions())
    if any(_MERGED in str(result.sql()) for result in results):
        node.exact = False
        node.reason = (
            "Spark computes aggregates of several conditions at once: the rows of all of them are given"
        )
    key = walk.key(plan, keys)
    tapped, groups = walk.grouped(node, below, key)
    column = walk.catalyst.alias(key, f"lineage_{groups}")
    aggregated = walk.catalyst.aggregate(own, [column], tapped)
    ids = [(column.toAttribute(), groups)]
    return walk.with_groups(Rewritten(aggregated, ids, node.number), subqueries)


HANDLERS: dict[str, Handler] = {"Aggregate": aggregate}

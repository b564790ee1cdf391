"""Aggregates: each group is made of the rows with its key."""

from __future__ import annotations

from spark_agent import contract
from spark_agent.sql.rewrite.plan_nodes import PlanNode
from spark_agent.sql.rewrite.plan_walk import Handler, Ids, Rewritten, Walk
from spark_agent.sql.types import Expression, Plan

#: So many ids at most are carried beside a group to say which rows decide it: each costs the job.
_MOST_PICKED = 8
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
    decided_by, picked = _decision(walk, own, node, below.ids)
    tapped, groups = walk.grouped(node, below, key, decided_by)
    column = walk.catalyst.alias(key, f"lineage_{groups}")
    winners = [walk.catalyst.alias(expression, "lineage_winner") for expression, _ in picked]
    aggregated = walk.catalyst.aggregate(own, [column, *winners], tapped)
    rewritten = Rewritten(aggregated, [(column.toAttribute(), groups)], node.number)
    if winners:
        sources = (source for _, source in picked)
        ids = list(zip((winner.toAttribute() for winner in winners), sources, strict=True))
        rewritten = walk.with_winners(node, own, rewritten, ids)
    return walk.with_groups(rewritten, subqueries)


def _decision(
    walk: Walk, plan: Plan, node: PlanNode, ids: Ids
) -> tuple[str | None, list[tuple[Expression, int]]]:
    """(which rows of a group give its results, functions of the ids of these with their nodes).

    They are not named where groups are not told apart, and where there are too many of them.
    """
    decision = walk.catalyst.decision(plan) if walk.taps.is_explained else None
    if decision != contract.BY_WINNERS:
        return decision if decision in contract.DECISIONS else None, []
    if not node.exact or not ids:
        return contract.BY_ALL, []
    expressions = walk.catalyst.picked_ids(plan, [column for column, _ in ids])
    if len(expressions) > _MOST_PICKED:
        return None, []
    sources = [source for _, source in ids] * (len(expressions) // len(ids))
    return decision, list(zip(expressions, sources, strict=True))


HANDLERS: dict[str, Handler] = {"Aggregate": aggregate}

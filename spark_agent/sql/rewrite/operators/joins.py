"""Joins: the ids of both sides, or of the side whose rows come out and the keys of the other."""

from __future__ import annotations

from spark_agent import contract
from spark_agent.sql.catalyst import is_hashable
from spark_agent.sql.rerun.rerunnable_plan import are_same_again
from spark_agent.sql.rewrite.plan_nodes import PlanNode, UncoveredError
from spark_agent.sql.rewrite.plan_walk import Handler, Ids, Rewritten, Walk
from spark_agent.sql.types import Plan

_LEFT_STAYS = ("LeftOuter", "LeftSingle", "FullOuter")
_RIGHT_STAYS = ("RightOuter", "FullOuter")


def join(walk: Walk, plan: Plan) -> Rewritten:
    kind = str(plan.joinType().toString())
    if walk.look(plan).has_subqueries:
        raise UncoveredError("Join with a subquery in its condition")
    is_existence = kind.startswith("ExistenceJoin")
    is_anti = kind == "LeftAnti" or (is_existence and walk.catalyst.is_denied(plan, walk.root))
    left, right = walk.rewrite(plan.left()), _right_side(walk, plan, are_sources=not is_anti)
    node = walk.operator(plan, [left.node, right.node])
    if is_anti:
        inner = walk.catalyst.project_as(plan.right(), right.plan)
        return Rewritten(walk.catalyst.with_children(plan, [left.plan, inner]), left.ids, node.number)
    if kind == "LeftSemi" or is_existence:
        return _semi_join(walk, plan, left, right, node, kind)
    if kind not in ("Inner", "Cross", *_LEFT_STAYS, *_RIGHT_STAYS):
        raise UncoveredError(f"Join {kind}")
    joined = walk.catalyst.with_children(plan, [left.plan, right.plan])
    left_ids = _nullable(left.ids) if kind in _RIGHT_STAYS else left.ids
    right_ids = _nullable(right.ids) if kind in _LEFT_STAYS else right.ids
    return Rewritten(joined, [*left_ids, *right_ids], node.number)


def _nullable(ids: Ids) -> Ids:
    """Of a row without a match. One that says that it is never null would be read without a look at that."""
    return [(column.withNullability(True), node) for column, node in ids]


def _right_side(walk: Walk, plan: Plan, *, are_sources: bool) -> Rewritten:
    """What Spark makes of a subquery may hold a copy of the left side, which is the query around it.

    `are_sources`: are rows of it sources of what the join gives?
    """
    if not walk.catalyst.is_beside_copy(plan.left(), plan.right()):
        return walk.rewrite(plan.right())
    copies = walk.copies
    walk.outers.append(plan.left())
    try:
        right = walk.rewrite(plan.right())
    finally:
        walk.outers.pop()
    if walk.copies == copies and are_sources:
        walk.upper_bound_reason = "rows of the query around a subquery may be taken for rows of the subquery"
    return right


def _semi_join(
    walk: Walk, plan: Plan, left: Rewritten, right: Rewritten, node: PlanNode, kind: str
) -> Rewritten:
    """The rows of the right side are known by their key, which the rows of the left side have, too.

    Where the condition is more than equal keys, the key is what the condition reads of the left side, and the
    pairs that meet are found by a query of their own, so that the join stays as it is.
    """
    keys = walk.catalyst.equi_join_keys(plan)
    left_keys, right_keys, is_all = keys if keys is not None else ([], [], not plan.condition().isDefined())
    read = [] if is_all else walk.catalyst.references(plan.condition().get(), plan.left())
    is_followed = not is_all and bool(left_keys) and all(map(is_hashable, walk.catalyst.types(read)))
    if is_followed and are_same_again(walk.catalyst, plan):
        left_keys = read
        pairs = walk.catalyst.inner_join(plan.left(), right.plan, plan)
        rows = Rewritten(pairs, right.ids, right.node)
        tapped, groups = walk.grouped(node, rows, walk.key(plan, left_keys), contract.BY_ONE)
        capture = walk.catalyst.after(walk.pruned(walk.catalyst.without_rows(tapped)))
        inner = plan.right()
    else:
        if not is_all:
            node.exact = False
            node.reason = (
                "of the other side, all rows with the same key are given: the rest of the condition is not "
                "followed"
            )
        decided_by = contract.BY_ONE if is_all else contract.BY_ALL
        tapped, groups = walk.grouped(node, right, walk.key(plan, right_keys), decided_by)
        inner, capture = walk.catalyst.project_as(plan.right(), tapped), None
    key = walk.key(plan, left_keys)
    if kind == "LeftSemi":
        column = walk.catalyst.alias(key, f"lineage_{groups}")
        outer, (attribute,) = walk.catalyst.with_columns(left.plan, [column])
        rewritten = walk.catalyst.with_children(plan, [outer, inner])
    else:
        joined = walk.catalyst.with_children(plan, [left.plan, inner])
        exists = plan.joinType().exists()
        column = walk.catalyst.alias(walk.catalyst.if_(exists, key, walk.catalyst.no_id), f"lineage_{groups}")
        rewritten, (attribute,) = walk.catalyst.with_columns(joined, [column])
    if capture is not None:
        rewritten = walk.catalyst.filter(capture, rewritten)
    return Rewritten(rewritten, [*left.ids, (attribute, groups)], node.number)


HANDLERS: dict[str, Handler] = {"Join": join}

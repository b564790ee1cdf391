"""Windows: a row stays itself, and each value is made of the rows of the window's partition."""

from __future__ import annotations

from spark_agent.sql.rewrite.plan_walk import Handler, Ids, Rewritten, Walk
from spark_agent.sql.types import Plan


def window(walk: Walk, plan: Plan) -> Rewritten:
    limits, child = [], plan.child()
    while walk.catalyst.kind(child) == "WindowGroupLimit":
        limits.append(child)
        child = child.child()
    below = walk.rewrite(child)
    node = walk.operator(plan, [below.node])
    if not walk.catalyst.is_of_whole_partitions(plan):
        node.exact = False
        node.reason = "a window's frame is not followed: any row of its partition may have gone into it"
    key = walk.key(plan, plan.partitionSpec())
    read = Rewritten(below.plan, _ids_read(walk, plan, child, below), below.node)
    tapped, groups = walk.grouped(node, read, key)
    column = walk.catalyst.alias(key, f"lineage_{groups}")
    rewritten, (attribute,) = walk.catalyst.with_columns(tapped, [column])
    for limit in reversed(limits):
        rewritten = walk.catalyst.with_children(limit, [rewritten])
    rewritten = walk.catalyst.with_children(plan, [rewritten])
    return Rewritten(rewritten, [*below.ids, (attribute, groups)], node.number)


def _ids_read(walk: Walk, plan: Plan, child: Plan, below: Rewritten) -> Ids:
    """The ids without those of windows right below, of which this one reads nothing.

    Spark puts the windows of one SELECT over each other, in an order of its own.
    """
    left_out, place, read = set(), len(below.ids), None
    while walk.look(child).kind == "Window" or _passes_columns_only(walk, child):
        if walk.look(child).kind == "Window":
            if read is None:
                read = walk.catalyst.column_ids_read(plan)
            place -= 1
            computed = {
                int(column.exprId().id()) for column in walk.catalyst.items(child.windowExpressions())
            }
            if not computed & read:
                left_out.add(place)
        child = child.child()
    return [entry for at, entry in enumerate(below.ids) if at not in left_out]


def _passes_columns_only(walk: Walk, plan: Plan) -> bool:
    if walk.look(plan).kind != "Project":
        return False
    columns = walk.catalyst.items(plan.projectList())
    return all(walk.catalyst.kind(column) == "AttributeReference" for column in columns)


HANDLERS: dict[str, Handler] = {"Window": window}

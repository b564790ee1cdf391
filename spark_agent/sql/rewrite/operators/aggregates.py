"""Where rows of one input meet: aggregates, windows, and functions over many rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spark_agent.sql.rewrite.plan_walk import Handler, Ids, Rewritten, Walk
from spark_agent.sql.types import Expression, Plan

#: Columns that Spark makes of the conditions of aggregates of one input, to read it once.
_MERGED = "propagatedFilter"


def aggregate(walk: Walk, plan: Plan) -> Rewritten:
    below = walk.child(plan)
    if any(walk.catalyst.is_copy(plan, outer) for outer in walk.outers):
        # The rows of the query around a subquery, once more: they only say what it is computed for.
        walk.copies += 1
        made = walk.catalyst.with_children(plan, [walk.catalyst.project_as(plan.child(), below.plan)])
        return Rewritten(made, [], walk.operator(plan, [below.node]).number)
    own, entered = walk.tapped_subqueries(plan)
    node = walk.operator(plan, [below.node, *(parent for _, parent in entered)])
    grouping = own.groupingExpressions()
    steady = walk.catalyst.without_sessions(grouping)
    if steady.size() < grouping.size():
        node.exact = False
        node.reason = "sessions are not told apart: what came with the same other keys is given"
    if any(_MERGED in str(each.sql()) for each in walk.catalyst.items(own.aggregateExpressions())):
        node.exact = False
        node.reason = (
            "Spark computes aggregates of several conditions at once: the rows of all of them are given"
        )
    key = walk.key(plan, steady)
    tapped, groups = walk.keyed(node, below, key)
    column = walk.catalyst.alias(key, f"lineage_{groups}")
    made = walk.catalyst.aggregate(own, [column], tapped)
    return walk.with_groups(entered, Rewritten(made, [(column.toAttribute(), groups)], node.number))


def window(walk: Walk, plan: Plan) -> Rewritten:
    limits, at = [], plan.child()
    while walk.catalyst.kind(at) == "WindowGroupLimit":
        limits.append(at)
        at = at.child()
    below = walk.rewrite(at)
    node = walk.operator(plan, [below.node])
    if not walk.catalyst.is_of_whole_partitions(plan):
        node.exact = False
        node.reason = "a window's frame is not followed: any row of its partition may have gone into it"
    key = walk.key(plan, plan.partitionSpec())
    read = Rewritten(below.plan, _read_of_windows(walk, plan, at, below), below.node)
    tapped, groups = walk.keyed(node, read, key)
    column = walk.catalyst.alias(key, f"lineage_{groups}")
    made, (attribute,) = walk.catalyst.with_columns(tapped, [column])
    for limit in reversed(limits):
        made = walk.catalyst.with_children(limit, [made])
    made = walk.catalyst.with_children(plan, [made])
    return Rewritten(made, [*below.ids, (attribute, groups)], node.number)


def _read_of_windows(walk: Walk, plan: Plan, child: Plan, below: Rewritten) -> Ids:
    """The ids without those of windows right below, of which this one reads nothing.

    Spark puts the windows of one SELECT over each other, in an order of its own.
    """
    left_out, place, read = set(), len(below.ids), None
    while walk.look(child).kind == "Window" or _passes_columns_only(walk, child):
        if walk.look(child).kind == "Window":
            if read is None:
                read = walk.catalyst.column_ids_read(plan)
            place -= 1
            made = {int(each.exprId().id()) for each in walk.catalyst.items(child.windowExpressions())}
            if not made & read:
                left_out.add(place)
        child = child.child()
    return [each for at, each in enumerate(below.ids) if at not in left_out]


def _passes_columns_only(walk: Walk, plan: Plan) -> bool:
    if walk.look(plan).kind != "Project":
        return False
    return all(
        walk.catalyst.kind(each) == "AttributeReference" for each in walk.catalyst.items(plan.projectList())
    )


def by_partition(walk: Walk, plan: Plan) -> Rewritten:
    return _bounded(walk, plan, walk.catalyst.partition_id, "record of the same partition")


def by_group(walk: Walk, plan: Plan) -> Rewritten:
    """The groups of a task cannot be told apart behind the function, so the bound is its partition.

    For that the shuffle that Spark would put below the function is put below the tap. Where it might do
    without one, or shuffle one side of two only, the bound is all there is.
    """
    children = walk.catalyst.items(plan.children())
    if len(children) == 1:
        grouping = [plan.groupingAttributes()]
    else:
        grouping = [plan.leftAttributes(), plan.rightAttributes()]
    if all(_is_spread(walk, each) for each in children) and not any(each.isEmpty() for each in grouping):
        return _bounded(walk, plan, walk.catalyst.partition_id, "record of the same partition", grouping)
    return _bounded(walk, plan, lambda: walk.catalyst.long(0), "record of its inputs")


def _is_spread(walk: Walk, plan: Plan) -> bool:
    """Must rows be shuffled to bring groups together, whatever they are grouped by?"""
    name = walk.look(plan).kind
    if name in _KEEPING_PARTITIONS:
        return all(_is_spread(walk, each) for each in walk.catalyst.items(plan.children()))
    if name == "LogicalRDD":
        return walk.catalyst.kind(plan.outputPartitioning()) == "UnknownPartitioning"
    return name == "LogicalRelation" and not walk.scans.is_interleaved(walk.look(plan))


def by_groups_of_two(walk: Walk, plan: Plan) -> Rewritten:
    """Where both sides are of one DataFrame, the operator names the left side's columns only as read."""
    walk.is_prunable = False
    return by_group(walk, plan)


def _bounded(
    walk: Walk, plan: Plan, key: Callable[[], Expression], bound: str, grouping: Sequence[Any] = ()
) -> Rewritten:
    """What a function makes of many rows: whatever entered together may have gone into each of it.

    With `grouping`, a Seq of columns for each child, rows are shuffled by these first.
    """
    belows = [walk.rewrite(each) for each in walk.catalyst.items(plan.children())]
    node = walk.operator(plan, [each.node for each in belows], exact=False)
    node.reason = f"{node.name} is a function over many records; what it gives may come from any {bound}"
    for below, columns in zip(belows, grouping, strict=bool(grouping)):
        below.plan = walk.catalyst.repartition(columns, below.plan)
    children, found = [], []
    for below, child in zip(belows, walk.catalyst.items(plan.children()), strict=True):
        tapped, groups = walk.keyed(node, below, key())
        children.append(walk.catalyst.project_as(child, tapped))
        found.append(groups)
    made = walk.catalyst.with_children(plan, children)
    columns = [walk.catalyst.alias(key(), f"lineage_{groups}") for groups in found]
    made, attributes = walk.catalyst.with_columns(made, columns)
    return Rewritten(made, list(zip(attributes, found, strict=True)), node.number)


#: Operators whose rows lie in the partitions in which they come.
_KEEPING_PARTITIONS = frozenset(
    ("Project", "Filter", "Generate", "Sample", "Union", "BatchEvalPython", "ArrowEvalPython")
)

HANDLERS: dict[str, Handler] = {
    "Aggregate": aggregate,
    "Window": window,
    **dict.fromkeys(
        ("MapInPandas", "MapInArrow", "PythonMapInArrow", "MapPartitions", "ScriptTransformation"),
        by_partition,
    ),
    **dict.fromkeys(
        ("FlatMapGroupsInPandas", "FlatMapGroupsInArrow"),
        by_group,
    ),
    **dict.fromkeys(("FlatMapCoGroupsInPandas", "FlatMapCoGroupsInArrow"), by_groups_of_two),
}

"""Functions over many rows: what they give may come from all rows that entered together, an upper bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spark_agent.sql.rewrite.plan_walk import Handler, Rewritten, Walk
from spark_agent.sql.types import Expression, Plan, Seq

#: Operators whose rows lie in the partitions in which they come.
_KEEPING_PARTITIONS = frozenset(
    ("Project", "Filter", "Generate", "Sample", "Union", "BatchEvalPython", "ArrowEvalPython")
)


def by_partition(walk: Walk, plan: Plan) -> Rewritten:
    return _upper_bound(walk, plan, walk.catalyst.partition_id, "record of the same partition")


def by_group(walk: Walk, plan: Plan) -> Rewritten:
    """The groups of a task cannot be told apart behind the function, so the upper bound is its partition.

    For that the shuffle that Spark would put below the function is put below the tap. Where it might do
    without one, or shuffle one side of two only, the upper bound is all there is.
    """
    children = walk.catalyst.items(plan.children())
    if len(children) == 1:
        grouping = [plan.groupingAttributes()]
    else:
        grouping = [plan.leftAttributes(), plan.rightAttributes()]
    is_shuffled = all(_is_spread(walk, child) for child in children)
    if is_shuffled and not any(columns.isEmpty() for columns in grouping):
        return _upper_bound(walk, plan, walk.catalyst.partition_id, "record of the same partition", grouping)
    return _upper_bound(walk, plan, lambda: walk.catalyst.long(0), "record of its inputs")


def by_groups_of_two(walk: Walk, plan: Plan) -> Rewritten:
    """Where both sides are of one DataFrame, the operator names the left side's columns only as read."""
    walk.is_prunable = False
    return by_group(walk, plan)


def _is_spread(walk: Walk, plan: Plan) -> bool:
    """Must rows be shuffled to bring groups together, whatever they are grouped by?"""
    name = walk.look(plan).kind
    if name in _KEEPING_PARTITIONS:
        return all(_is_spread(walk, child) for child in walk.catalyst.items(plan.children()))
    if name == "LogicalRDD":
        return walk.catalyst.kind(plan.outputPartitioning()) == "UnknownPartitioning"
    return name == "LogicalRelation" and not walk.scans.is_interleaved(walk.look(plan))


def _upper_bound(
    walk: Walk, plan: Plan, key: Callable[[], Expression], origin: str, grouping: Sequence[Seq] = ()
) -> Rewritten:
    """What a function makes of many rows: whatever entered together may have gone into each of it.

    With `grouping`, the columns of each child, rows are shuffled by these first.
    """
    inputs = walk.catalyst.items(plan.children())
    belows = [walk.rewrite(child) for child in inputs]
    node = walk.operator(plan, [below.node for below in belows], exact=False)
    node.reason = f"{node.name} is a function over many records; what it gives may come from any {origin}"
    for below, columns in zip(belows, grouping, strict=bool(grouping)):
        below.plan = walk.catalyst.repartition(columns, below.plan)
    children, groups = [], []
    for below, child in zip(belows, inputs, strict=True):
        tapped, group = walk.grouped(node, below, key())
        children.append(walk.catalyst.project_as(child, tapped))
        groups.append(group)
    rewritten = walk.catalyst.with_children(plan, children)
    id_columns = [walk.catalyst.alias(key(), f"lineage_{group}") for group in groups]
    rewritten, attributes = walk.catalyst.with_columns(rewritten, id_columns)
    return Rewritten(rewritten, list(zip(attributes, groups, strict=True)), node.number)


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(
        ("MapInPandas", "MapInArrow", "PythonMapInArrow", "MapPartitions", "ScriptTransformation"),
        by_partition,
    ),
    **dict.fromkeys(("FlatMapGroupsInPandas", "FlatMapGroupsInArrow"), by_group),
    **dict.fromkeys(("FlatMapCoGroupsInPandas", "FlatMapCoGroupsInArrow"), by_groups_of_two),
}

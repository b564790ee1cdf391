"""Functions over many rows: what they give may come from all rows that entered together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spark_agent.sql.catalyst import is_hashable
from spark_agent.sql.python_functions import PythonFunction
from spark_agent.sql.rewrite.plan_walk import Handler, Ids, Rewritten, Walk
from spark_agent.sql.types import Expression, Plan, Seq
from spark_agent.worker import group_functions

#: Operators whose rows lie in the partitions in which they come.
_KEEPING_PARTITIONS = frozenset(
    ("Project", "Filter", "Generate", "Sample", "Union", "BatchEvalPython", "ArrowEvalPython")
)
#: The column in which the id of a group goes through Python.
_GROUP = "lineage_group"
#: With another value than this, PySpark takes what a function gives in other ways than are known here.
_BY_NAME = "spark.sql.legacy.execution.pandas.groupedMap.assignColumnsByName"
#: How many rows Spark gives Python at once.
_BATCH_SIZE = "spark.sql.execution.arrow.maxRecordsPerBatch"
#: Where it is set, users see what Python runs.
_PROFILER = "spark.sql.pyspark.udf.profiler"


def by_partition(walk: Walk, plan: Plan) -> Rewritten:
    """A function that reads a partition. What it gives may come from all that it has read by then.

    Python can say what that is of mapInPandas. Of others it is known what Spark has read for the function.
    """
    catalyst = walk.catalyst
    below = walk.child(plan)
    node = walk.operator(plan, [below.node], exact=False)
    node.reason = (
        f"{node.name} is a function over many records; "
        "what it gives may come from any record of the same partition that was read by then"
    )
    size = int(catalyst.conf(plan, _BATCH_SIZE, "10000"))
    tapped, group, reads = walk.read_so_far(node, below, size if size > 0 else 10_000)
    function = _naming_function(walk, plan, [plan.child()], [])
    if function is None:
        rewritten = catalyst.with_children(plan, [catalyst.project_as(plan.child(), tapped)])
        rewritten, results = catalyst.with_columns(rewritten, [catalyst.alias(reads, _GROUP)])
    else:
        name = _unused(walk, [plan.child(), plan])
        numbered, attributes = catalyst.with_columns(tapped, [catalyst.alias(reads, name)])
        child = catalyst.project_as(plan.child(), numbered, attributes)
        rewritten, results = _with_ids(walk, plan, [child], function, name, attributes)
    return Rewritten(*_null_of_none(walk, plan, rewritten, results, [group]), node.number)


def by_group(walk: Walk, plan: Plan) -> Rewritten:
    """A function that is called for each group. Rows that it gives name their group, where Python can say it.

    Else the groups of a task cannot be told apart behind the function, and the upper bound is its partition.
    For that the shuffle that Spark would put below the function is put below the tap. Where it might do
    without one, or shuffle one side of two only, the upper bound is all there is.
    """
    children = walk.catalyst.items(plan.children())
    if len(children) == 1:
        grouping = [plan.groupingAttributes()]
    else:
        grouping = [plan.leftAttributes(), plan.rightAttributes()]
    if all(columns.isEmpty() for columns in grouping):
        return _by_key(walk, plan, lambda: walk.catalyst.long(0))  # one group
    function = _naming_function(walk, plan, children, grouping)
    if function is not None:
        return _named_groups(walk, plan, grouping, function)
    is_shuffled = all(_is_spread(walk, child) for child in children)
    if is_shuffled and not any(columns.isEmpty() for columns in grouping):
        return _upper_bound(walk, plan, walk.catalyst.partition_id, "record of the same partition", grouping)
    return _upper_bound(walk, plan, lambda: walk.catalyst.long(0), "record of its inputs")


def by_groups_of_two(walk: Walk, plan: Plan) -> Rewritten:
    """Where both sides are of one DataFrame, the operator names the left side's columns only as read."""
    walk.is_prunable = False
    return by_group(walk, plan)


def _naming_function(
    walk: Walk, plan: Plan, children: Sequence[Plan], grouping: Sequence[Seq]
) -> PythonFunction | None:
    """The function, if ids can go through it without a change of what the job gives or tells.

    `grouping` has the columns of each child that groups are made by, if they are.
    """
    catalyst = walk.catalyst
    function = catalyst.functions.of(plan)
    if function is None or function.evaluation not in group_functions.SHAPES:
        return None
    types = [catalyst.types(columns) for columns in grouping]
    is_nameable = types.count(types[0]) == len(types) and all(map(is_hashable, types[0])) if types else True
    sizes = [columns.size() for columns in grouping] or [0]
    has_data = all(child.output().size() > size for child, size in zip(children, sizes, strict=True))
    is_usual = catalyst.conf(plan, _BY_NAME, "true") == "true" and not catalyst.conf(plan, _PROFILER, "")
    return function if is_nameable and has_data and is_usual and plan.output().size() > 0 else None


def _named_groups(walk: Walk, plan: Plan, grouping: Sequence[Seq], function: PythonFunction) -> Rewritten:
    """Each row has the id of its group, a hash of the key, on its way into the function and out of it."""
    catalyst = walk.catalyst
    inputs = catalyst.items(plan.children())
    belows = [walk.rewrite(child) for child in inputs]
    node = walk.operator(plan, [below.node for below in belows])
    name = _unused(walk, [*inputs, plan])
    children, arguments, groups = [], [], []
    for below, child, columns in zip(belows, inputs, grouping, strict=True):
        key = catalyst.alias(walk.key(plan, columns), name)
        keyed, attributes = catalyst.with_columns(below.plan, [key])
        tapped, group = walk.grouped(node, Rewritten(keyed, below.ids, below.node), attributes[0])
        children.append(catalyst.project_as(child, tapped, attributes))
        arguments += attributes
        groups.append(group)
    rewritten, results = _with_ids(walk, plan, children, function, name, arguments)
    if len(groups) == 1:
        return Rewritten(rewritten, [(results[0], groups[0])], node.number)
    return Rewritten(*_null_of_none(walk, plan, rewritten, results, groups), node.number)


def _with_ids(
    walk: Walk,
    plan: Plan,
    children: list[Plan],
    function: PythonFunction,
    name: str,
    arguments: list[Expression],
) -> tuple[Plan, list[Expression]]:
    """A function over children with columns of ids, and the column of ids that it gives for each child."""
    catalyst = walk.catalyst
    names = [f"{name}_{side}" for side in range(len(children))]
    results = [catalyst.alias(catalyst.no_id, column).toAttribute() for column in names]
    command = group_functions.with_ids(function.command, function.evaluation, name, names)
    over = catalyst.with_children(plan, children)
    return catalyst.functions.replaced(over, command, arguments, results), results


def _null_of_none(
    walk: Walk, plan: Plan, rewritten: Plan, results: list[Expression], groups: list[int]
) -> tuple[Plan, Ids]:
    """`rewritten` with a null in the place of the number that stands for no rows, as ids have it."""
    catalyst = walk.catalyst
    no_rows = catalyst.long(group_functions.NO_ROWS)
    columns = [
        catalyst.alias(
            catalyst.if_(catalyst.same(result, no_rows), catalyst.no_id, result), f"lineage_{group}"
        )
        for result, group in zip(results, groups, strict=True)
    ]
    ids = zip((column.toAttribute() for column in columns), groups, strict=True)
    return catalyst.project_as(plan, rewritten, columns), list(ids)


def _unused(walk: Walk, plans: Sequence[Plan]) -> str:
    """A name that no column of these plans begins with."""
    used = [name.lower() for plan in plans for name in walk.catalyst.names(plan.output())]
    name = _GROUP
    while any(column.startswith(name) for column in used):
        name += "_"
    return name


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
    """What a function makes of many rows: whatever has the same key may have gone into each of it.

    With `grouping`, the columns of each child, rows are shuffled by these first.
    """
    name = walk.look(plan).name
    reason = f"{name} is a function over many records; what it gives may come from any {origin}"
    return _by_key(walk, plan, key, grouping, exact=False, reason=reason)


def _by_key(
    walk: Walk, plan: Plan, key: Callable[[], Expression], grouping: Sequence[Seq] = (), **fields: Any
) -> Rewritten:
    """What has the same key on both sides of a function has gone into each row that the function gives."""
    inputs = walk.catalyst.items(plan.children())
    belows = [walk.rewrite(child) for child in inputs]
    node = walk.operator(plan, [below.node for below in belows], **fields)
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
        ("MapInPandas", "MapInArrow", "PythonMapInArrow", "ScriptTransformation"),
        by_partition,
    ),
    **dict.fromkeys(("FlatMapGroupsInPandas", "FlatMapGroupsInArrow"), by_group),
    **dict.fromkeys(("FlatMapCoGroupsInPandas", "FlatMapCoGroupsInArrow"), by_groups_of_two),
}

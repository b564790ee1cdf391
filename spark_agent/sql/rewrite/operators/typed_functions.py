"""Typed functions of Scala and Java: rows become objects, and what a function makes of these becomes rows.

Ids do not pass through objects. So what such a function gives may come from any row of its partition.
"""

from __future__ import annotations

from spark_agent.sql.files.commands import GIVING, TYPED
from spark_agent.sql.rewrite.plan_nodes import UncoveredError
from spark_agent.sql.rewrite.plan_walk import Handler, Rewritten, Walk
from spark_agent.sql.types import Plan


def of_objects(walk: Walk, plan: Plan) -> Rewritten:
    catalyst, functions = walk.catalyst, [plan]
    while (name := walk.look(functions[-1].child()).kind) in TYPED:
        functions.append(functions[-1].child())
    if name != GIVING:
        raise UncoveredError(name)
    functions.append(functions[-1].child())
    source = functions[-1].child()
    below = walk.rewrite(source)
    node = walk.operator(plan, [below.node], exact=False)
    node.reason = "a typed function made these rows; each may come from any record of the same partition"
    tapped, group = walk.grouped(node, below, catalyst.partition_id())
    rewritten = catalyst.project_as(source, tapped)
    for function in reversed(functions):
        rewritten = catalyst.with_children(function, [rewritten])
    rewritten, attributes = catalyst.with_columns(
        rewritten, [catalyst.alias(catalyst.partition_id(), f"lineage_{group}")]
    )
    return Rewritten(rewritten, [(attributes[0], group)], node.number)


HANDLERS: dict[str, Handler] = {"SerializeFromObject": of_objects}

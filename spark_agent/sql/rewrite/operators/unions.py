"""Unions."""

from __future__ import annotations

import re

from spark_agent.sql.rewrite.plan_walk import Handler, Rewritten, Walk
from spark_agent.sql.types import Plan

#: How Spark counts the rows of the right side of an EXCEPT ALL.
_COUNTED_OFF = re.compile(r"\[-1 AS vcol#")
_COUNTED = re.compile(r"\[-?1 AS vcol#")


def union(walk: Walk, plan: Plan) -> Rewritten:
    """Each input has columns for the ids of all; those of the others are null in it."""
    inputs = walk.catalyst.items(plan.children())
    is_counting, walk.is_counting = walk.is_counting, False
    belows = [walk.rewrite(child) for child in inputs]
    for at, child in enumerate(inputs if is_counting else ()):
        if _is_counted_off(walk, child):
            belows[at] = Rewritten(belows[at].plan, [], belows[at].node)
    sources = [node for below in belows for _, node in below.ids]
    children = []
    for at, (child, below) in enumerate(zip(inputs, belows, strict=True)):
        columns = [
            walk.catalyst.alias(column if at == other_at else walk.catalyst.no_id, f"lineage_{node}")
            for other_at, other in enumerate(belows)
            for column, node in other.ids
        ]
        children.append(walk.catalyst.project_as(child, below.plan, columns))
    united = walk.catalyst.with_children(plan, children)
    ids = list(zip(walk.catalyst.last(united.output(), len(sources)), sources, strict=True))
    return Rewritten(united, ids, walk.operator(plan, [below.node for below in belows]).number)


def _is_counted_off(walk: Walk, plan: Plan) -> bool:
    """The column that counts may have come to stand below a sort, a limit or a filter of the side."""
    text = walk.look(plan).text
    if _COUNTED.search(text) is None:
        children = walk.catalyst.items(plan.children())
        return len(children) == 1 and _is_counted_off(walk, children[0])
    return _COUNTED_OFF.search(text) is not None


HANDLERS: dict[str, Handler] = {"Union": union}

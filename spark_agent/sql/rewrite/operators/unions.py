"""Unions, and queries with names that are read several times."""

from __future__ import annotations

import re

from spark_agent.sql.rewrite.plan_nodes import UncoveredError
from spark_agent.sql.rewrite.plan_walk import Handler, Rewritten, Walk
from spark_agent.sql.types import Plan

#: How Spark counts the rows of the right side of an EXCEPT ALL.
_COUNTED_OFF = re.compile(r"\[-1 AS vcol#")
_COUNTED = re.compile(r"\[-?1 AS vcol#")


def union(walk: Walk, plan: Plan) -> Rewritten:
    """Each input has columns for the ids of all; those of the others are null in it."""
    original = walk.catalyst.items(plan.children())
    is_counting, walk.is_counting = walk.is_counting, False
    belows = [walk.rewrite(each) for each in original]
    for at, each in enumerate(original if is_counting else ()):
        if _is_counted_off(walk, each):
            belows[at] = Rewritten(belows[at].plan, [], belows[at].node)
    tags = [node for below in belows for _, node in below.ids]
    children = []
    for index, (child, below) in enumerate(zip(original, belows, strict=True)):
        columns = [
            walk.catalyst.alias(column if index == other else walk.catalyst.no_id, f"lineage_{node}")
            for other, each in enumerate(belows)
            for column, node in each.ids
        ]
        children.append(walk.catalyst.project_as(child, below.plan, columns))
    made = walk.catalyst.with_children(plan, children)
    ids = list(zip(walk.catalyst.last(made.output(), len(tags)), tags, strict=True))
    return Rewritten(made, ids, walk.operator(plan, [below.node for below in belows]).number)


def _is_counted_off(walk: Walk, plan: Plan) -> bool:
    """The column that counts may have come to stand below a sort, a limit or a filter of the side."""
    text = walk.look(plan).text
    if _COUNTED.search(text) is None:
        children = walk.catalyst.items(plan.children())
        return len(children) == 1 and _is_counted_off(walk, children[0])
    return _COUNTED_OFF.search(text) is not None


def with_named(walk: Walk, plan: Plan) -> Rewritten:
    """Queries with names that are made once and read several times, each by a `CTERelationRef`."""
    definitions = []
    for each in walk.catalyst.items(plan.cteDefs()):
        if "CTERelationRef" in str(each.treeString()):  # or in a subquery
            raise UncoveredError("a query with a name that reads another one")
        below = walk.child(each)
        ids = [column for column, _ in below.ids]
        made = walk.catalyst.project_as(each, below.plan, ids)
        definitions.append(walk.catalyst.definition(each, ids, made))
        walk.definitions[int(each.id())] = below.ids, below.node
    query = walk.rewrite(plan.plan())
    made = walk.catalyst.with_children(plan, [*definitions, query.plan])
    return Rewritten(made, query.ids, query.node)


def named(walk: Walk, plan: Plan) -> Rewritten:
    ids, node = walk.definitions[int(plan.cteId())]
    columns = [
        walk.catalyst.alias(walk.catalyst.no_id, f"lineage_{source}").toAttribute() for _, source in ids
    ]
    made = walk.catalyst.with_output(plan, columns)
    found = [(column, source) for column, (_, source) in zip(columns, ids, strict=True)]
    return Rewritten(made, found, walk.operator(plan, [node]).number)


HANDLERS: dict[str, Handler] = {"Union": union, "WithCTE": with_named, "CTERelationRef": named}

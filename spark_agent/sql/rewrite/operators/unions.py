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


def with_definitions(walk: Walk, plan: Plan) -> Rewritten:
    """Queries with names that are computed once and read several times, each by a `CTERelationRef`."""
    definitions = []
    for definition in walk.catalyst.items(plan.cteDefs()):
        if "CTERelationRef" in str(definition.treeString()):  # or in a subquery
            raise UncoveredError("a query with a name that reads another one")
        below = walk.child(definition)
        ids = [column for column, _ in below.ids]
        rewritten = walk.catalyst.project_as(definition, below.plan, ids)
        definitions.append(walk.catalyst.definition(definition, ids, rewritten))
        walk.definitions[int(definition.id())] = below.ids, below.node
    query = walk.rewrite(plan.plan())
    return Rewritten(walk.catalyst.with_children(plan, [*definitions, query.plan]), query.ids, query.node)


def reference(walk: Walk, plan: Plan) -> Rewritten:
    ids, node = walk.definitions[int(plan.cteId())]
    columns = [
        walk.catalyst.alias(walk.catalyst.no_id, f"lineage_{source}").toAttribute() for _, source in ids
    ]
    extended = walk.catalyst.with_output(plan, columns)
    ids = [(column, source) for column, (_, source) in zip(columns, ids, strict=True)]
    return Rewritten(extended, ids, walk.operator(plan, [node]).number)


HANDLERS: dict[str, Handler] = {
    "Union": union,
    "WithCTE": with_definitions,
    "CTERelationRef": reference,
}

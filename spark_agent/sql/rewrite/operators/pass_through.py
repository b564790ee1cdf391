"""Operators with one input that pass rows on, leave some out, or make several of one."""

from __future__ import annotations

from spark_agent.sql.rewrite.plan_walk import Handler, Rewritten, Walk
from spark_agent.sql.types import Plan


def pass_through(walk: Walk, plan: Plan) -> Rewritten:
    return walk.pass_through(plan)


def project(walk: Walk, plan: Plan) -> Rewritten:
    below = walk.child(plan)
    ids = [column for column, _ in below.ids]
    return walk.with_subqueries(
        plan, below, lambda one: walk.catalyst.project(one.projectList(), below.plan, ids)
    )


def repartition(walk: Walk, plan: Plan) -> Rewritten:
    below = walk.child(plan)
    columns = [column for column, _ in below.ids]
    return walk.with_subqueries(
        plan, below, lambda one: walk.catalyst.repartition_over(one, columns, below.plan)
    )


def generate(walk: Walk, plan: Plan) -> Rewritten:
    """Of EXCEPT ALL, Spark makes a union with a count for each row; only the left side is a source."""
    walk.is_counting = walk.catalyst.kind(plan.generator()) == "ReplicateRows"
    try:
        below = walk.child(plan)
    finally:
        walk.is_counting = False
    return walk.with_subqueries(plan, below, lambda one: walk.catalyst.generate(one, below.plan))


def expand(walk: Walk, plan: Plan) -> Rewritten:
    below = walk.child(plan)
    own, subqueries = walk.tapped_subqueries(plan)
    columns = [column for column, _ in below.ids]
    output = [walk.catalyst.alias(column, column.name()).toAttribute() for column in columns]
    expanded = walk.catalyst.expand(own, columns, output, below.plan)
    ids = [(attribute, node) for attribute, (_, node) in zip(output, below.ids, strict=True)]
    return walk.over(plan, Rewritten(below.plan, ids, below.node), expanded, subqueries)


#: Whatever columns their input has go through them as they are.
_PASS_THROUGH = frozenset(
    (
        "Sort",
        "GlobalLimit",
        "LocalLimit",
        "LimitAll",
        "Offset",
        "Tail",
        "RebalancePartitions",
        "SubqueryAlias",
        "View",
        "ResolvedHint",
        "Sample",
        "CollectMetrics",
        "BatchEvalPython",
        "ArrowEvalPython",
        "WindowGroupLimit",
        "AttachDistributedSequence",
        "TypedFilter",
    )
)

#: As these, but Spark may partition rows round-robin by a hash of all their columns.
_REPARTITIONS = frozenset(("Repartition", "RepartitionByExpression"))

HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(_PASS_THROUGH, pass_through),
    **dict.fromkeys(_REPARTITIONS, repartition),
    "Project": project,
    "Generate": generate,
    "Expand": expand,
}

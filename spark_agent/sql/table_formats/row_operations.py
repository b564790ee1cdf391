"""What a statement of a table does with each row: which it deletes, and which it only copies.

The plan of a statement leaves the rows out that it deletes. A tap where they are left out makes them records
of a sink of their own, which has no files. Promises that a plan whose rows are not known to be deleted is
rewritten as any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from spark_agent import contract
from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.rewrite.plan_nodes import PlanNode
from spark_agent.sql.rewrite.plan_walk import Ids, Rewritten, Walk
from spark_agent.sql.types import Expression, Plan

#: As RowOperations.java has them.
_DELETE, _COPY = 3, 4
#: Joins of a MERGE that writes files anew: rows of the table that it copies stay, on the right.
_KEEPING_TABLE = ("RightOuter", "FullOuter")
_BATCH_INDEX = "TahoeBatchFileIndex"
#: Why the rows that a statement deletes have no files, until its version is known.
DELETED = "these rows were deleted"
NOT_KNOWN = "which rows this statement deleted is not known"


def deleted_by(path: str, version: str) -> str:
    """What is said of rows that a statement has deleted."""
    return f"{DELETED}: version {version} of {path} is without them"


@dataclass
class StatementRows:
    """The rows that a statement writes, and the node of those that it deletes, if these are known."""

    written: Rewritten
    deleted: PlanNode | None = None
    is_known: bool = True  # is it known which rows it deletes


@dataclass(frozen=True)
class StatementPlan:
    """`leaving_out` is the filter of a statement's plan that leaves out what it deletes; None: not known."""

    statement: str
    leaving_out: Plan | None
    sink: dict[str, Any] = field(default_factory=dict)  # of the node of the rows that are deleted

    @classmethod
    def of(cls, catalyst: Catalyst, statement: str, query: Plan, sink: dict[str, Any]) -> StatementPlan:
        """`statement` is MERGE or DELETE."""
        operations = catalyst.row_operations
        known = operations.filterOfMerge(query) if statement == "MERGE" else operations.filterOfDelete(query)
        return cls(statement, known, sink)

    def rewritten(self, walk: Walk, query: Plan) -> StatementRows:
        """Raises UncoveredError."""
        if self.leaving_out is None:
            return StatementRows(walk.rewrite(query), is_known=False)
        walk.root, filter_, catalyst = query, self.leaving_out, walk.catalyst
        if self.statement == "MERGE":
            below, operation = _with_operations(walk, filter_.child())
        else:
            below, operation = walk.rewrite(filter_.child()), None
        if operation is not None and not catalyst.row_operations.mayDelete(filter_.child()):
            return StatementRows(_above(walk, query, filter_, below, filter_.condition()))
        node = walk.nodes.operator(
            f"{self.statement}: deleted rows",
            parents=[below.node],
            kind="sink",
            relation=contract.FLOWS,
            by_id=True,
            reason=DELETED,
            **{"description": "", **self.sink},
        )
        node.id_parents = list(dict.fromkeys(source for _, source in below.ids))
        leaving = catalyst.not_(walk.taps.tap(node.number, below.ids))
        if operation is None:
            condition = catalyst.if_(filter_.condition(), catalyst.true, leaving)
        else:
            is_deleted = catalyst.same(operation, catalyst.long(_DELETE))
            condition = catalyst.if_(is_deleted, leaving, filter_.condition())
        return StatementRows(_above(walk, query, filter_, below, condition), node)


def _above(walk: Walk, query: Plan, filter_: Plan, below: Rewritten, condition: Expression) -> Rewritten:
    """A filter with another condition, and the projections over it that `query` begins with."""
    catalyst, projections = walk.catalyst, []
    while catalyst.kind(query) == "Project":
        projections.append(query)
        query = query.child()
    rows = walk.over(filter_, below, catalyst.filter(condition, below.plan), ())
    for projection in reversed(projections):
        ids = [column for column, _ in rows.ids]
        rows = walk.over(projection, rows, catalyst.project(projection.projectList(), rows.plan, ids), ())
    return rows


def _with_operations(walk: Walk, projection: Plan) -> tuple[Rewritten, Expression]:
    """The rows of a MERGE with what becomes of each. One that is copied is not of the source of the MERGE."""
    catalyst = walk.catalyst
    below = walk.rewrite(projection.child())
    operation = catalyst.alias(catalyst.row_operations.operation(projection), "lineage_operation")
    ids = [column for column, _ in below.ids]
    projected = catalyst.project(projection.projectList(), below.plan, [*ids, operation])
    rows = walk.over(projection, below, projected, ())
    attribute = operation.toAttribute()
    of_table = _ids_of_table(catalyst, projection.child(), below.ids)
    if of_table is None:
        return rows, attribute
    is_copied = catalyst.same(attribute, catalyst.long(_COPY))
    of_source = [
        catalyst.alias(catalyst.if_(is_copied, catalyst.no_id, column), f"lineage_{node}")
        for column, node in rows.ids[:-of_table]
    ]
    kept = rows.ids[-of_table:]
    columns = [*catalyst.items(projection.output()), *(column for column, _ in kept), attribute]
    plan = catalyst.project(columns, rows.plan, of_source)
    sources = [node for _, node in rows.ids[:-of_table]]
    ids_now: Ids = [(column.toAttribute(), node) for column, node in zip(of_source, sources, strict=True)]
    return Rewritten(plan, [*ids_now, *kept], rows.node), attribute


def _ids_of_table(catalyst: Catalyst, plan: Plan, ids: Ids) -> int | None:
    """How many of the ids, the last ones, are those of the table. None where that is not known."""
    while catalyst.kind(plan) in ("Project", "Filter"):
        plan = plan.child()
    if catalyst.kind(plan) != "Join" or str(plan.joinType().toString()) not in _KEEPING_TABLE:
        return None
    leaves = catalyst.items(plan.right().collectLeaves())
    is_table = len(leaves) == 1 and catalyst.kind(leaves[0]) == "LogicalRelation"
    if not is_table or len(ids) < 2:
        return None
    files = leaves[0].relation()
    is_batch = catalyst.kind(files) == "HadoopFsRelation" and catalyst.kind(files.location()) == _BATCH_INDEX
    return 1 if is_batch else None


def deleted_rows(catalyst: Catalyst, plan: Plan) -> tuple[Plan | None, Callable[[Plan], Plan]]:
    """Of a plan that gathers rows for deletion vectors: the part that gives them, and what replaces it."""
    operations = catalyst.row_operations
    rows = operations.deletedRows(plan)
    return rows, lambda query: operations.replaced(plan, rows, query)

"""What a statement of a table does with each row: which it deletes, and which it only copies.

The plan of a statement leaves the rows out that it deletes. A tap where they are left out makes them records
of a sink of their own, which has no files. Promises that a plan whose rows are not known to be deleted is
rewritten as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spark_agent import contract
from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.rewrite.plan_nodes import PlanNode
from spark_agent.sql.rewrite.plan_walk import Ids, Rewritten, Walk
from spark_agent.sql.types import Expression, Plan

#: As contract.ROW_OPERATIONS has them.
UPDATE, DELETE, COPY = 2, 3, 4
_COPIED = contract.ROW_OPERATIONS[COPY]
#: The command of an UPDATE of Delta Lake, which has its condition.
UPDATING = "UpdateCommand"
#: The column of what is done with a row.
OPERATION = "lineage_operation"
#: Spark may partition rows by turns, by a hash of all their columns.
_REPARTITIONS = frozenset(("Repartition", "RepartitionByExpression"))
#: Joins of a MERGE that writes files anew: rows of the table that it copies stay, on the right.
_KEEPING_TABLE = ("RightOuter", "FullOuter")
_BATCH_INDEX = "TahoeBatchFileIndex"
#: Why the rows that a statement deletes have no files, until its version is known.
DELETED = "these rows were deleted"
NOT_KNOWN = "which rows this statement deleted is not known"


def sink_name(statement: str) -> str:
    """Of the rows that a statement deletes."""
    return f"{statement}: deleted rows"


def deleted_by(path: str, version: str) -> str:
    """What is said of rows that a statement has deleted."""
    return f"{DELETED}: version {version} of {path} is without them"


@dataclass
class StatementRows:
    """The rows that a statement writes, and the nodes of those that it deletes or that are changes, if known.

    It does `default` with each row that it writes, or what `operation` says, an expression over these rows.
    """

    written: Rewritten
    deleted: PlanNode | None = None
    changes: PlanNode | None = None  # of a change data feed
    is_known: bool = True  # is it known which rows it deletes
    default: str | None = None
    operation: Expression | None = None


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
        filter_of = operations.filterOfMerge if statement == "MERGE" else operations.filterOfDelete
        return cls(statement, filter_of(query), sink)

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
            written = _above(walk, query, below, operation, filter_, filter_.condition())
            return StatementRows(written, default=_COPIED, operation=operation)
        node = deleted_node(walk, self.statement, below, [below.node], self.sink)
        leaving = catalyst.not_(walk.taps.tap(node.number, below.ids))
        if operation is None:
            condition = catalyst.if_(filter_.condition(), catalyst.true, leaving)
        else:
            is_deleted = catalyst.same(operation, catalyst.long(DELETE))
            condition = catalyst.if_(is_deleted, leaving, filter_.condition())
        written = _above(walk, query, below, operation, filter_, condition)
        return StatementRows(written, node, default=_COPIED, operation=operation)


def deleted_node(
    walk: Walk, statement: str, rows: Rewritten, parents: list[int], sink: Mapping[str, Any]
) -> PlanNode:
    """The node of the rows that a statement deletes, of which `rows` are some."""
    node = walk.nodes.operator(
        sink_name(statement),
        parents=parents,
        kind="sink",
        relation=contract.FLOWS,
        by_id=True,
        reason=DELETED,
        **{"description": "", **sink},
    )
    node.id_parents = list(dict.fromkeys(source for _, source in rows.ids))
    return node


def _above(
    walk: Walk,
    query: Plan,
    below: Rewritten,
    operation: Expression | None,
    filter_: Plan,
    condition: Expression,
) -> Rewritten:
    """A filter with another condition, and what stands over it in `query`: projections and repartitions."""
    catalyst, moves = walk.catalyst, []
    while catalyst.kind(query) != "Filter":
        moves.append(query)
        query = query.child()
    rows = walk.over(filter_, below, catalyst.filter(condition, below.plan), ())
    return moved(walk, moves, rows, operation)


def moved(walk: Walk, moves: Sequence[Plan], rows: Rewritten, operation: Expression | None) -> Rewritten:
    """`rows` below projections, filters, sorts and repartitions, the first of which is on top.

    `operation` is a column of the rows that these keep, too.
    """
    catalyst = walk.catalyst
    for plan in reversed(moves):
        kind = catalyst.kind(plan)
        if kind == "Project":
            rows = _projected(walk, plan, rows, operation)
        elif kind in _REPARTITIONS:
            repartitioned = catalyst.repartition_over(plan, _columns_beside(rows, operation), rows.plan)
            rows = walk.over(plan, rows, repartitioned, ())
        else:
            rows = walk.over(plan, rows, catalyst.with_children(plan, [rows.plan]), ())
    return rows


def _projected(walk: Walk, projection: Plan, rows: Rewritten, more: Expression | None) -> Rewritten:
    plan = walk.catalyst.project(projection.projectList(), rows.plan, _columns_beside(rows, more))
    return walk.over(projection, rows, plan, ())


def _columns_beside(rows: Rewritten, more: Expression | None) -> list[Expression]:
    return [*(column for column, _ in rows.ids), *([] if more is None else [more])]


def rows_of_update(walk: Walk, query: Plan, condition: Expression | None) -> StatementRows:
    """Of an UPDATE the rows that it writes: those that fulfil its condition are updated, others copied.

    Nothing is said of a condition that may be another one each time, nor where the rows are not those that it
    is about. None: it has no condition. Raises UncoveredError.
    """
    catalyst = walk.catalyst
    is_plain = catalyst.kind(query) == "Project"
    if is_plain and condition is not None:
        columns = set(catalyst.column_ids(query.child()))
        is_plain = bool(condition.deterministic()) and catalyst.column_ids_read(condition) <= columns
    if not is_plain:
        return StatementRows(walk.rewrite(query))
    if condition is None:
        return StatementRows(walk.rewrite(query), default="update")
    walk.root = query
    below = walk.rewrite(query.child())
    is_updated = catalyst.same(condition, catalyst.true)
    numbers = catalyst.if_(is_updated, catalyst.long(UPDATE), catalyst.long(COPY))
    operation = catalyst.alias(numbers, OPERATION)
    written = _projected(walk, query, below, operation)
    return StatementRows(written, default=_COPIED, operation=operation.toAttribute())


def _with_operations(walk: Walk, projection: Plan) -> tuple[Rewritten, Expression]:
    """The rows of a MERGE with what becomes of each. One that is copied is not of the source of the MERGE."""
    catalyst = walk.catalyst
    below = walk.rewrite(projection.child())
    operation = catalyst.alias(catalyst.row_operations.operation(projection), OPERATION)
    ids = [column for column, _ in below.ids]
    projected = catalyst.project(projection.projectList(), below.plan, [*ids, operation])
    rows = walk.over(projection, below, projected, ())
    attribute = operation.toAttribute()
    return without_source_of_copies(walk, projection, projection.child(), rows, attribute), attribute


def without_source_of_copies(
    walk: Walk, like: Plan, joined: Plan, rows: Rewritten, operation: Expression
) -> Rewritten:
    """Rows of a MERGE, of which those that are copied are not of its source.

    They have the columns of `like` and `operation`; `joined` is the plan with the join that they are made of.
    """
    catalyst = walk.catalyst
    of_table = _ids_of_table(catalyst, joined, rows.ids)
    if of_table is None:
        return rows
    is_copied = catalyst.same(operation, catalyst.long(COPY))
    of_source = [
        catalyst.alias(catalyst.if_(is_copied, catalyst.no_id, column), f"lineage_{node}")
        for column, node in rows.ids[:-of_table]
    ]
    kept = rows.ids[-of_table:]
    columns = [*catalyst.items(like.output()), *(column for column, _ in kept), operation]
    plan = catalyst.project(columns, rows.plan, of_source)
    sources = [node for _, node in rows.ids[:-of_table]]
    ids_now: Ids = [(column.toAttribute(), node) for column, node in zip(of_source, sources, strict=True)]
    return Rewritten(plan, [*ids_now, *kept], rows.node)


def _ids_of_table(catalyst: Catalyst, plan: Plan, ids: Ids) -> int | None:
    """How many of the ids, the last ones, are those of the table. None where that is not known."""
    while catalyst.kind(plan) in ("Project", "Filter", "Generate"):
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

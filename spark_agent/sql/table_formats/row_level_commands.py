"""What an UPDATE, a DELETE or a MERGE of a table of version 2 (Iceberg) does with each row.

Spark makes a query of it: of the rows of files that are written anew (copy-on-write), or of rows and of
positions that are deleted (merge-on-read). A tap where rows are left out makes those that are deleted records
of a sink of their own. Promises that a plan which is not as it is expected to be is rewritten as any other,
and that its results are then no exact ones where rows may be deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spark_agent.sql import tables
from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.rewrite.operators import merges
from spark_agent.sql.rewrite.plan_nodes import PlanNode
from spark_agent.sql.rewrite.plan_walk import Rewritten, Walk
from spark_agent.sql.table_formats import row_operations
from spark_agent.sql.table_formats.row_operations import COPY, DELETE, UPDATE, StatementRows
from spark_agent.sql.types import Expression, Plan

#: Of a command that writes files anew; the other kind writes rows and positions of deleted ones.
_REPLACING = "ReplaceData"
#: What stands over the rows of a statement: it leaves none out.
_MOVES = frozenset(("Project", "Sort", "RebalancePartitions", "Repartition", "RepartitionByExpression"))
#: What may stand below the filter of a DELETE, and leaves no rows out.
_KEEPING = frozenset(("Project", "BatchEvalPython", "ArrowEvalPython"))
_RUNTIME = "DynamicPruningExpression"
_SCAN = "DataSourceV2ScanRelation"
#: Joins with a subquery of a condition -> do the rows with a match stay?
_JOINS = {"LeftSemi": True, "LeftAnti": False}


def may_leave_out(command: Plan, kind: str) -> bool:
    """May a statement delete rows beside those that it writes, of the command `kind`?"""
    statement = tables.statement_of(command)
    return statement == "MERGE" or (statement == "DELETE" and kind == _REPLACING)


def is_only_deleting(command: Plan, kind: str) -> bool:
    """Are all rows of its query those that it deletes?"""
    return kind != _REPLACING and tables.statement_of(command) == "DELETE"


@dataclass(frozen=True)
class RowLevelCommand:
    """`condition` is that of an UPDATE; `sink` is of the node of the rows that are deleted."""

    statement: str
    is_replacing: bool
    condition: Expression
    sink: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, catalyst: Catalyst, command: Plan, sink: Mapping[str, Any]) -> RowLevelCommand | None:
        """None of another command."""
        statement = tables.statement_of(command)
        if statement is None:
            return None
        return cls(statement, catalyst.kind(command) == _REPLACING, command.condition(), sink)

    def rewritten(self, walk: Walk, query: Plan) -> StatementRows:
        """Raises UncoveredError."""
        rows: StatementRows | None
        if self.statement == "MERGE":
            rows = self._merged(walk, query)
        elif self.statement == "UPDATE":
            rows = self._updated(walk, query)
        elif self.is_replacing:
            rows = self._left(walk, query)
        else:
            return StatementRows(walk.rewrite(query), default="delete")
        if rows is not None:
            return rows
        walk.upper_bound_reason = walk.upper_bound_reason or row_operations.NOT_KNOWN
        return StatementRows(walk.rewrite(query), is_known=False)

    # -- UPDATE --------------------------------------------------------------------------------------

    def _updated(self, walk: Walk, query: Plan) -> StatementRows:
        """Of files that are written anew, rows that do not fulfil the condition are copied."""
        catalyst = walk.catalyst
        if not self.is_replacing or str(self.condition.toString()) == "true":
            return StatementRows(walk.rewrite(query), default="update")
        moves, rows = _parted(catalyst, query)
        if catalyst.kind(rows) == "Union":
            return _united(walk, query, moves, rows)
        projection = moves[-1] if moves and catalyst.kind(moves[-1]) == "Project" else None
        if projection is None or not self._is_evaluable(catalyst, projection.child()):
            return StatementRows(walk.rewrite(query))
        walk.root = query
        is_updated = catalyst.same(self.condition, catalyst.true)
        numbers = catalyst.if_(is_updated, catalyst.long(UPDATE), catalyst.long(COPY))
        return _with_operation(walk, moves, walk.rewrite(projection.child()), numbers)

    def _is_evaluable(self, catalyst: Catalyst, rows: Plan) -> bool:
        is_plain = bool(catalyst.merge_instructions.isPlain(self.condition))
        return is_plain and catalyst.column_ids_read(self.condition) <= set(catalyst.column_ids(rows))

    # -- DELETE --------------------------------------------------------------------------------------

    def _left(self, walk: Walk, query: Plan) -> StatementRows | None:
        """Of a DELETE that writes files anew: what it leaves of them. None where that is not known."""
        catalyst = walk.catalyst
        moves, rows = _parted(catalyst, query)
        if catalyst.kind(rows) == "Join" and str(rows.joinType().toString()) in _JOINS:
            rows = catalyst.existence_filter(rows, is_kept=_JOINS[str(rows.joinType().toString())])
        if catalyst.kind(rows) != "Filter" or not _keeps_all(catalyst, rows.child()):
            return None
        conditions = catalyst.conjuncts(rows.condition())
        runtime = [one for one in conditions if catalyst.kind(one) == _RUNTIME]
        own = catalyst.all_of([one for one in conditions if catalyst.kind(one) != _RUNTIME])
        if own is None:
            return None
        files = catalyst.all_of(runtime)
        walk.root = rows.child()  # a row that is deleted is of what it met in the condition, too
        below = walk.rewrite(rows.child() if files is None else catalyst.filter(files, rows.child()))
        leaving = catalyst.filter(own, rows.child())
        tapped, groups = walk.tapped_subqueries(leaving)
        below = walk.with_groups(below, groups)
        parents = [below.node, *(group.operator for group in groups)]
        node = self._deleted(walk, below, parents)
        is_deleted = catalyst.not_(walk.taps.tap(node.number, below.ids))
        condition = catalyst.if_(tapped.condition(), catalyst.true, is_deleted)
        operator = walk.operator(leaving, parents).number
        left = Rewritten(catalyst.filter(condition, below.plan), below.ids, operator)
        return StatementRows(row_operations.moved(walk, moves, left, None), node, default="copy")

    # -- MERGE ---------------------------------------------------------------------------------------

    def _merged(self, walk: Walk, query: Plan) -> StatementRows | None:
        """None where it is not known which rows it deletes."""
        catalyst = walk.catalyst
        moves, merge = _parted(catalyst, query)
        instructions = catalyst.merge_instructions
        if catalyst.kind(merge) != "MergeRows" or not instructions.areKnown(merge):
            return None
        walk.root, node = query, None
        rows, operation = merges.merge_rows_with_operations(walk, merge)
        if instructions.mayDelete(merge):
            node = self._deleted(walk, rows, [rows.node])
            tap = walk.taps.tap(node.number, rows.ids)
            is_deleted = catalyst.same(operation, catalyst.long(DELETE))
            # Where files are written anew, nobody writes such a row. Else it says which one is deleted.
            condition = catalyst.if_(
                is_deleted, catalyst.not_(tap) if self.is_replacing else tap, catalyst.true
            )
            rows = Rewritten(catalyst.filter(condition, rows.plan), rows.ids, rows.node)
        written = row_operations.moved(walk, moves, rows, operation)
        return StatementRows(written, node, default="copy", operation=operation)

    def _deleted(self, walk: Walk, rows: Rewritten, parents: list[int]) -> PlanNode:
        return row_operations.deleted_node(walk, self.statement, rows, parents, self.sink)


def _parted(catalyst: Catalyst, query: Plan) -> tuple[list[Plan], Plan]:
    """What stands over the rows of a statement, the first of it on top, and the plan of these rows."""
    moves = []
    while catalyst.kind(query) in _MOVES:
        moves.append(query)
        query = query.child()
    return moves, query


def _keeps_all(catalyst: Catalyst, plan: Plan) -> bool:
    """Does a plan give all rows of the files that a scan reads?"""
    while (kind := catalyst.kind(plan)) != _SCAN:
        if kind == "Join" and str(plan.joinType().toString()).startswith("ExistenceJoin"):
            plan = plan.left()
        elif kind in _KEEPING or (
            kind == "Filter"
            and all(catalyst.kind(one) == _RUNTIME for one in catalyst.conjuncts(plan.condition()))
        ):
            plan = plan.child()
        else:
            return False
    return True


def _united(walk: Walk, query: Plan, moves: Sequence[Plan], union: Plan) -> StatementRows:
    """Of an UPDATE whose condition has a subquery: first the rows that it updates, then the others."""
    catalyst = walk.catalyst
    walk.root = query
    rows = walk.rewrite(union)
    is_known = len(catalyst.items(union.children())) == 2 and len(rows.ids) > 1
    if not is_known:
        return StatementRows(row_operations.moved(walk, moves, rows, None))
    # The first ids are of the table's scan in the first part. They are null in the other part.
    is_copied = catalyst.is_null(rows.ids[0][0])
    numbers = catalyst.if_(is_copied, catalyst.long(COPY), catalyst.long(UPDATE))
    return _with_operation(walk, moves, rows, numbers)


def _with_operation(walk: Walk, moves: Sequence[Plan], rows: Rewritten, numbers: Expression) -> StatementRows:
    """`numbers` is an expression over the rows, below all of `moves`."""
    column = walk.catalyst.alias(numbers, row_operations.OPERATION)
    plan, (operation,) = walk.catalyst.with_columns(rows.plan, [column])
    written = row_operations.moved(walk, moves, Rewritten(plan, rows.ids, rows.node), operation)
    return StatementRows(written, default="copy", operation=operation)

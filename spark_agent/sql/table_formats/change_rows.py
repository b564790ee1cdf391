"""Rows of a change data feed, which a statement of Delta Lake writes beside the rows of its table.

A query has both: a column names the type of a change, and is null in a row of the table. They are records of
two sinks, so that rows of the table are as of a table without a feed. Promises that a plan which is not known
says nothing of what was done with its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spark_agent import contract
from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.rewrite.plan_nodes import PlanNode
from spark_agent.sql.rewrite.plan_walk import Rewritten, Walk
from spark_agent.sql.table_formats import row_operations
from spark_agent.sql.table_formats.row_operations import COPY, UPDATE, StatementRows
from spark_agent.sql.types import Expression, OutputFiles, Plan

#: What was done with the records of a sink of changes, as a dataset says it.
OPERATION = "change"
#: Columns of a query that has both: the type of a change, and whether a row is one.
_CHANGE_TYPE, _IS_CHANGE = "_change_type", "__is_cdc"
#: A column below the rows of an UPDATE: was the row updated?
_CONDITION = "__condition__"
#: What makes the same rows of each one: an UPDATE whose rows are all updated.
_SAME = "CreateArray"
_INSERT = 1
_COPIED = contract.ROW_OPERATIONS[COPY]
#: Operators between the rows that are written and the one that makes changes of them.
_ABOVE = frozenset(("Project", "Filter", "Repartition", "RepartitionByExpression", "RebalancePartitions"))


def sink_name(statement: str) -> str:
    """Of the changes that a statement writes."""
    return f"{statement}: change rows"


@dataclass(frozen=True)
class ChangeColumns:
    """Of a query that writes changes: is a row one, and of which type."""

    is_change: Expression
    change_type: Expression

    @classmethod
    def of(cls, catalyst: Catalyst, query: Plan) -> ChangeColumns | None:
        """None of a query that writes none."""
        output = query.output()
        by_name = dict(zip(catalyst.names(output), catalyst.items(output), strict=True))
        if not by_name.keys() >= {_CHANGE_TYPE, _IS_CHANGE}:
            return None
        return cls(by_name[_IS_CHANGE], by_name[_CHANGE_TYPE])


def rows_of(walk: Walk, query: Plan, statement: str | None) -> StatementRows:
    """All rows of a query that writes changes, and what was done with those of the table.

    Raises UncoveredError.
    """
    if statement == "DELETE":  # it writes what it keeps, and a change for each row that it deletes
        return StatementRows(walk.rewrite(query), default=_COPIED)
    catalyst, above, plan = walk.catalyst, [], query
    while (kind := catalyst.kind(plan)) in _ABOVE:
        above.append(plan)
        plan = plan.child()
    if kind == "Generate" and statement == "UPDATE" and catalyst.kind(plan.generator().child()) == _SAME:
        return StatementRows(walk.rewrite(query), default=contract.ROW_OPERATIONS[UPDATE])
    numbers = None if kind != "Generate" else _operation(catalyst, statement, plan.child())
    if numbers is None:
        return StatementRows(walk.rewrite(query))
    walk.root = query
    below = walk.rewrite(plan.child())
    operation = catalyst.alias(numbers, row_operations.OPERATION)
    attribute = operation.toAttribute()
    columns = [*(column for column, _ in below.ids), operation]
    rows = Rewritten(catalyst.project_as(plan.child(), below.plan, columns), below.ids, below.node)
    if statement == "MERGE":
        rows = row_operations.without_source_of_copies(walk, plan.child(), plan.child(), rows, attribute)
    rows = walk.over(plan, rows, catalyst.generate(plan, rows.plan), ())
    rows = row_operations.moved(walk, above, rows, attribute)
    return StatementRows(rows, default=_COPIED, operation=attribute)


def _operation(catalyst: Catalyst, statement: str | None, plan: Plan) -> Expression | None:
    """What was done with the row of the table that is made of a row of `plan`; None: not known."""
    output = plan.output()
    by_name = dict(zip(catalyst.names(output), catalyst.items(output), strict=True))
    copied = catalyst.long(COPY)
    if statement == "UPDATE" and _CONDITION in by_name:
        is_updated = catalyst.same(by_name[_CONDITION], catalyst.true)
        return catalyst.if_(is_updated, catalyst.long(UPDATE), copied)
    if statement != "MERGE" or "packedCdc" not in by_name:
        return None
    packed = by_name["packedCdc"]
    names = list(packed.dataType().fieldNames())
    if _CHANGE_TYPE not in names:
        return None
    change_type = catalyst.field(packed, names.index(_CHANGE_TYPE))
    is_inserted = catalyst.same(change_type, catalyst.text_literal("insert"))
    is_copied = catalyst.is_null(change_type)
    written = catalyst.if_(is_inserted, catalyst.long(_INSERT), catalyst.long(UPDATE))
    return catalyst.if_(is_copied, copied, written)


def tapped(
    walk: Walk,
    columns: ChangeColumns,
    rows: Rewritten,
    statement: str,
    sink: dict[str, Any],
    files: OutputFiles | None,
    deletion: dict[str, Any] | None,
) -> tuple[Rewritten, PlanNode, PlanNode | None]:
    """The rows with taps for the changes among them, and the nodes of these and of rows that are deleted.

    `sink` and `deletion` are fields of these nodes; without `deletion` nothing is deleted.
    """
    catalyst, taps = walk.catalyst, walk.taps
    changes = _sink(walk, sink_name(statement), rows, sink)
    tap = taps.tap(changes.number, rows.ids, output_files=files)
    plan = catalyst.filter(catalyst.either(catalyst.not_(columns.is_change), tap), rows.plan)
    deleted = None
    if deletion is not None:
        is_deleted = catalyst.same(columns.change_type, catalyst.text_literal("delete"))
        fields = {"reason": row_operations.DELETED, **deletion}
        deleted = _sink(walk, row_operations.sink_name(statement), rows, fields)
        tap = taps.tap(deleted.number, rows.ids)
        plan = catalyst.filter(catalyst.either(catalyst.not_(is_deleted), tap), plan)
    return Rewritten(plan, rows.ids, rows.node), changes, deleted


def _sink(walk: Walk, name: str, rows: Rewritten, fields: dict[str, Any]) -> PlanNode:
    node = walk.nodes.operator(
        name, parents=[rows.node], kind="sink", relation=contract.FLOWS, by_id=True, **fields
    )
    node.id_parents = list(dict.fromkeys(source for _, source in rows.ids))
    return node

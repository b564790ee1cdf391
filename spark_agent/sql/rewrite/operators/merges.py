"""MERGE of tables of version 2: Spark joins the table with the source, and says what becomes of each pair.

A new row is made of the row that it was before, of the row of the source, or of both. One that is copied,
since its file is written anew, stays what it was: it names no row of the source, met or not.
"""

from __future__ import annotations

from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.rewrite.plan_walk import Handler, Rewritten, Walk
from spark_agent.sql.types import Expression, Plan

_NOT_TOLD_APART = (
    "where the MERGE joins the table with its source was not found: a row that is only copied may name rows "
    "of the source"
)


#: The column of a row that says what is done with it.
_OPERATION = "lineage_operation"


def merge_rows(walk: Walk, plan: Plan) -> Rewritten:
    return _merged(walk, plan, None)


def merge_rows_with_operations(walk: Walk, plan: Plan) -> tuple[Rewritten, Expression]:
    """The rows of a MergeRows, and the column that says what is done with each.

    By the numbers of contract.ROW_OPERATIONS; 0 of a row that only says which one is gone. Rows that are
    deleted come, too. Only of one whose instructions are known.
    """
    number = walk.catalyst.alias(walk.catalyst.long(0), _OPERATION).toAttribute()
    return _merged(walk, plan, number), number


def _merged(walk: Walk, plan: Plan, operation: Expression | None) -> Rewritten:
    below = walk.child(plan)
    own, subqueries = walk.tapped_subqueries(plan)
    columns = [column for column, _ in below.ids]
    of_table = columns_of_table(walk.catalyst, below.plan, columns)
    copied = (
        columns
        if of_table is None
        else [column if int(column.exprId().id()) in of_table else walk.catalyst.no_id for column in columns]
    )
    ids = [
        walk.catalyst.alias(column, column.name()).toAttribute().withNullability(True) for column in columns
    ]
    output = ids if operation is None else [*ids, operation]
    merged = walk.catalyst.merge_rows(
        own, columns, copied, output, below.plan, has_operations=operation is not None
    )
    nodes = [node for _, node in below.ids]
    node = walk.operator(plan, [below.node, *(group.operator for group in subqueries)])
    if of_table is None:
        node.exact, node.reason = False, _NOT_TOLD_APART
    return walk.with_groups(Rewritten(merged, list(zip(ids, nodes, strict=True)), node.number), subqueries)


def columns_of_table(catalyst: Catalyst, rows: Plan, columns: list[Expression]) -> set[int] | None:
    """Those of the side of the join that is the table; all where there is no join, as of an empty source.

    None where it is not known which of `columns` are of which side.
    """
    children = catalyst.items(rows.children())
    while len(children) == 1:
        rows, children = children[0], catalyst.items(children[0].children())
    if not children:
        return {int(column.exprId().id()) for column in columns}
    if catalyst.kind(rows) != "Join":
        return None
    table, source = (set(catalyst.column_ids(side)) for side in children)
    is_known = all(int(column.exprId().id()) in table | source for column in columns)
    return table if is_known else None


HANDLERS: dict[str, Handler] = {"MergeRows": merge_rows}

"""MERGE of tables of version 2: Spark joins the table with the source, and says what becomes of each pair.

A new row is made of the row that it was before, of the row of the source, or of both. One that is copied,
since its file is written anew, stays what it was: it names no row of the source, met or not.
"""

from __future__ import annotations

from spark_agent.sql.rewrite.plan_walk import Handler, Rewritten, Walk
from spark_agent.sql.types import Plan


def merge_rows(walk: Walk, plan: Plan) -> Rewritten:
    below = walk.child(plan)
    own, subqueries = walk.tapped_subqueries(plan)
    columns = [column for column, _ in below.ids]
    of_table = _columns_of_table(walk, below.plan)
    copied = [column if int(column.exprId().id()) in of_table else walk.catalyst.no_id for column in columns]
    output = [
        walk.catalyst.alias(column, column.name()).toAttribute().withNullability(True) for column in columns
    ]
    merged = walk.catalyst.merge_rows(own, columns, copied, output, below.plan)
    ids = [(attribute, node) for attribute, (_, node) in zip(output, below.ids, strict=True)]
    return walk.over(plan, Rewritten(below.plan, ids, below.node), merged, subqueries)


def _columns_of_table(walk: Walk, rows: Plan) -> set[int]:
    """Those of the side of the join that is the table; all where there is none, as of an empty source."""
    while walk.catalyst.kind(rows) in ("Project", "Filter"):
        rows = rows.child()
    table = rows.left() if walk.catalyst.kind(rows) == "Join" else rows
    return set(walk.catalyst.column_ids(table))


HANDLERS: dict[str, Handler] = {"MergeRows": merge_rows}

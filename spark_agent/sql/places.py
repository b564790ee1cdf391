"""Which file of an output a row goes into, in the terms of Spark's own writer.

The writer takes another file where the columns that name folders (partitionBy) or the bucket of a row
change. Promises expressions over the columns of the query that tell when they do, and what to. Not told where
rows are sorted once more behind the query, so that the order of the query is not that of the files.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_agent.sql.catalyst import Catalyst, Expression, Plan

#: In numbers of these types two that are different names may be equal: 0.0 and -0.0.
_FLOATS = frozenset(("float", "double"))


class UnknownOrderError(Exception):
    """The rows of an output are written in another order than that in which they come."""


@dataclass(frozen=True)
class Places:
    """`key` is a long, neither null nor negative, that changes with the file; the rest tells which it is."""

    key: Expression
    bucket: Expression | None
    columns: list[str]
    values: list[Expression]  # their texts, as they are in names of folders
    writers: int  # files that a task may have open at a time; 0: rows are sorted, and it has one


def of_command(catalyst: Catalyst, command: Plan) -> Places | None:
    """Those of a command that writes files; None where the rows of a task go into one folder, in order.

    Raises UnknownOrderError.
    """
    columns = catalyst.items(command.partitionColumns())
    bucket = catalyst.bucket(command)
    if not columns and bucket is None:
        return None
    is_planned = str(command.children().apply(0).getClass().getSimpleName()) == "WriteFiles"
    if not is_planned and not command.requiredOrdering().isEmpty():
        raise UnknownOrderError
    zone = catalyst.options(command.options()).get("timezone") or str(command.conf().sessionLocalTimeZone())
    values = [catalyst.text(each, zone) for each in columns]
    told = [
        value if str(each.dataType().typeName()) in _FLOATS else each
        for each, value in zip(columns, values, strict=True)
    ]
    key = catalyst.key([*told, *([] if bucket is None else [bucket])])
    writers = (
        0 if command.requiredOrdering().nonEmpty() else int(command.conf().maxConcurrentOutputFileWriters())
    )
    return Places(key, bucket, [str(each.name()) for each in columns], values, writers)

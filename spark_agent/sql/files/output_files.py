"""Which file of an output a row goes into, and as how many lines, in the terms of Spark's own writer.

The writer takes another file where the columns that name folders (partitionBy) or the bucket of a row
change. Promises expressions over the columns of the query that say when they do, and what to, and in which
columns the end of a line would make a row several lines. Not known where rows are sorted once more behind the
query, so that the order of the query is not that of the files, or where lines end in other ways.
"""

from __future__ import annotations

from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.types import Expression, OutputFiles, Plan, Seq

#: In numbers of these types two that are different names may be equal: 0.0 and -0.0.
_FLOATS = frozenset(("float", "double"))
#: Formats that write a text as it is; JSON writes the end of a line in another way.
_AS_IT_IS = frozenset(("text", "csv", "csv+header"))
_OF_LINES = _AS_IT_IS | {"json"}


class UnknownFilesError(Exception):
    """Which rows of its files the rows of an output become is not known; the text says why."""


def of_command(catalyst: Catalyst, command: Plan, options: dict[str, str], format: str) -> OutputFiles:
    """Those of a command that writes files with these options. Raises UnknownFilesError."""
    if format in _OF_LINES and options.get("linesep", "\n") != "\n":
        raise UnknownFilesError("its lines end in another way")
    if format in _OF_LINES and options.get("encoding", options.get("charset", "utf-8")).lower() != "utf-8":
        raise UnknownFilesError("its lines are not of UTF-8")
    if format == "json" and options.get("pretty", "false").lower() == "true":
        raise UnknownFilesError("its records have several lines")
    data_columns = catalyst.data_columns(command)
    files = of_one_folder(catalyst, data_columns, format)
    columns = catalyst.items(command.partitionColumns())
    bucket = _bucket(catalyst, command, data_columns)
    if not columns and bucket is None:
        return files
    ordering = command.requiredOrdering()
    is_planned = catalyst.kind(command.child()) == "WriteFiles"
    if not is_planned and not ordering.isEmpty():
        raise UnknownFilesError("its rows are sorted behind the query")
    zone = options.get("timezone") or str(command.conf().sessionLocalTimeZone())
    values = [catalyst.text(column, zone) for column in columns]
    keys = [
        value if type_name in _FLOATS else column
        for column, value, type_name in zip(columns, values, catalyst.types(columns), strict=True)
    ]
    key = catalyst.key([*keys, *([] if bucket is None else [bucket])])
    writers = int(command.conf().maxConcurrentOutputFileWriters()) if ordering.isEmpty() else 0
    return OutputFiles(key, bucket, catalyst.names(columns), values, writers, files.texts, files.is_alone)


def of_one_folder(catalyst: Catalyst, columns: Seq, format: str) -> OutputFiles:
    """Those of an output of these columns that goes into one folder. Raises UnknownFilesError."""
    if format not in _AS_IT_IS:
        return OutputFiles()
    if format == "csv+header" and any("\n" in name for name in catalyst.names(columns)):
        raise UnknownFilesError("its header has several lines")
    texts = catalyst.text_columns(columns)
    if texts is None:
        raise UnknownFilesError("its columns may hold ends of lines")
    return OutputFiles(texts=texts, is_alone=format != "text" and int(columns.size()) == 1)


def _bucket(catalyst: Catalyst, command: Plan, data_columns: Seq) -> Expression | None:
    """The number of the bucket into which a command puts a row."""
    if not command.bucketSpec().isDefined():
        return None
    writes = catalyst.jvm.org.apache.spark.sql.execution.datasources.V1WritesUtils
    spec = writes.getWriterBucketSpec(command.bucketSpec(), data_columns, command.options())
    return spec.get().bucketIdExpression() if spec.isDefined() else None

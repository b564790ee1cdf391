"""Results of traces as DataFrames and RDDs of the running session.

To ask for lineage is no part of the job: nothing that is done here is captured.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import reduce
from typing import Any

from spark_agent import agent
from spark_agent.sql.files.numbered_rows import numbered

#: So many rows travel through the driver; Spark itself reads more, from their files.
ROWS_FROM_DRIVER = 10_000
_ROW = "path string, row long, line long, text string"


def record_ids(ids: Sequence[tuple[str, str]]) -> Any:
    """An RDD of (node id, record id)."""
    spark = _session()
    with _uncaptured():
        return spark.createDataFrame(list(ids), "node_id string, record_id string").rdd.map(tuple)


def rows_of_files(rows: Sequence[tuple[str, int, int, str | None]]) -> Any:
    """A DataFrame (path, row, line, text). Many rows are read by Spark where they stand."""
    spark = _session()
    with _uncaptured():
        frame = spark.createDataFrame(list(rows), _ROW)
        _leave_out(frame)
        return frame if len(rows) <= ROWS_FROM_DRIVER else _read_by_spark(spark, frame)


def _read_by_spark(spark: Any, rows: Any) -> Any:
    """The rows by their numbers, with the text that stands in the files now."""
    paths = [path for (path,) in rows.select("path").distinct().collect()]
    joined = [
        rows.where(rows.path == path).drop("text").join(rows_of_file(spark, path), "row") for path in paths
    ]
    return reduce(type(rows).union, joined).select("path", "row", "line", "text")


def rows_of_file(spark: Any, path: str) -> Any:
    """(row, text) of a text file."""
    return numbered(spark, path, "text", leave_out=_leave_out).selectExpr("row", "value as text")


def _leave_out(frame: Any) -> None:
    """What is made of `frame` is not captured."""
    active = agent.active()
    if active is not None:
        active.spark_sessions.leave_out(frame)


def _session() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


def _uncaptured() -> AbstractContextManager[Any]:
    active = agent.active()
    return nullcontext() if active is None else active.session.scope.inner_job()

"""The rows of a query that may have become one row of a file, as a DataFrame.

The row is read from its file by Spark. Its values become conditions on those columns of the query that are
the same each time it runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.files.numbered_rows import literally, numbered
from spark_agent.sql.rerun.plan_frames import Frames
from spark_agent.sql.rerun.rerunnable_plan import NotRepeatableError, candidates_of
from spark_agent.sql.rerun.row_conditions import (
    LINES,
    TYPED,
    RowError,
    WrittenColumn,
    WrittenFile,
    folder_conditions,
    line_condition,
)
from spark_agent.sql.types import Expression, Plan

#: Values of such types have no equality in Spark.
_UNORDERED_TYPES = ("map<", "variant", "geometry", "geography")

LeaveOut = Callable[[Any], None]
"""Is given DataFrames whose queries are no part of the job."""


class RowQueries:
    """Makes the DataFrames of one application's queries."""

    def __init__(self, catalyst: Catalyst, jvm: Any) -> None:
        self._catalyst, self._jvm = catalyst, jvm
        self._frames = Frames(catalyst, jvm)

    def frame(self, query: Plan, file: WrittenFile, row: int, leave_out: LeaveOut) -> Any:
        """The rows of `query` that may have become row `row` of a file.

        Raises RowError and NotRepeatableError.
        """
        if file.format not in (*TYPED, *LINES):
            raise RowError(f"{file.path}: rows of the format {file.format} cannot be looked for")
        if file.has_header and row == 0:
            raise RowError(f"{file.path}: row 0 is the header")
        catalyst = self._catalyst
        candidates = candidates_of(catalyst, query)
        renamed = [
            catalyst.alias(column, f"lineage_{at}")
            for at, column in enumerate(catalyst.items(query.output()))
        ]
        plan = catalyst.project(
            [*renamed, catalyst.alias(catalyst.long(1), "lineage_again")], candidates.plan
        )
        stable = [at for at in range(len(renamed)) if at not in candidates.unstable]
        if file.format in LINES:
            return self._frame_of_line(plan, stable, file, self._line(file, row, leave_out))
        return self._frame_of_values(plan, renamed, stable, file, row, leave_out)

    def _frame_of_line(self, plan: Plan, stable: list[int], file: WrittenFile, line: str) -> Any:
        frame = self._frames.of(plan)
        columns = {file.columns[at].name: frame[f"lineage_{at}"] for at in stable}
        conditions = line_condition(file, line)(columns)
        if not conditions:
            raise NotRepeatableError("none of its columns is the same each time")
        return _filtered(frame, conditions)

    def _frame_of_values(
        self,
        plan: Plan,
        renamed: list[Expression],
        stable: list[int],
        file: WrittenFile,
        row: int,
        leave_out: LeaveOut,
    ) -> Any:
        catalyst = self._catalyst
        in_file = [at for at in stable if file.columns[at].name not in file.folders]
        literal = self._typed(file, row, [file.columns[at] for at in in_file], leave_out) if in_file else None
        for position, at in enumerate(in_file):
            column, value = renamed[at].toAttribute(), catalyst.field(literal, position)
            if any(name in file.columns[at].type_name for name in _UNORDERED_TYPES):
                column, value = catalyst.text(column), catalyst.text(value)
            plan = catalyst.filter(catalyst.same(column, value), plan)
        frame = self._frames.of(plan)
        columns = {file.columns[at].name: frame[f"lineage_{at}"] for at in stable}
        conditions = folder_conditions(file, columns)
        if not in_file and not conditions:
            raise NotRepeatableError("none of its columns is the same each time")
        return _filtered(frame, conditions)

    def _line(self, file: WrittenFile, row: int, leave_out: LeaveOut) -> str:
        from pyspark.sql import functions as F

        ends = {name: value for name, value in file.options.items() if name == "lineSep"}
        lines = numbered(_spark(), file.path, "text", options=ends, leave_out=leave_out)
        lines = lines.where(F.col("row") == row).select("value")
        leave_out(lines)
        collected = lines.collect()
        if not collected:
            raise _no_row(file, row)
        return str(collected[0].value)

    def _typed(
        self, file: WrittenFile, row: int, columns: list[WrittenColumn], leave_out: LeaveOut
    ) -> Expression:
        """A literal: a struct of the row's values."""
        from pyspark.sql import functions as F

        spark = _spark()
        schema = self._jvm.org.apache.spark.sql.types.StructType()
        for column in columns:
            schema = schema.add(column.name, column.type)
        names = [F.col(f"`{column.name.replace('`', '``')}`") for column in columns]
        if file.format == "parquet":
            reader = spark.read.schema(_schema(schema))
            rows = reader.parquet(literally(file.path)).where(F.col("_metadata.row_index") == row)
        else:
            rows = numbered(spark, file.path, file.format, schema=_schema(schema), leave_out=leave_out)
            rows = rows.where(F.col("row") == row)
        rows = rows.select(F.struct(*names))
        leave_out(rows)
        collected = rows._jdf.queryExecution().executedPlan().executeCollect()
        if not len(collected):
            raise _no_row(file, row)
        return self._catalyst.literal(collected[0].getStruct(0, len(names)), schema)


def _filtered(frame: Any, conditions: list[Any]) -> Any:
    for condition in conditions:
        frame = frame.where(condition)
    return frame


def _no_row(file: WrittenFile, row: int) -> RowError:
    return RowError(f"{file.path} has no row {row} (rows count from 0)")


def _schema(java_schema: Any) -> Any:
    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(java_schema.json()))


def _spark() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()

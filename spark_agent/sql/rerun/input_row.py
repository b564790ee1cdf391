"""One row of a file, read by Spark as the scan of a query reads it, as a plan of that row alone.

Rows of Parquet know their index. Of other files the records of the file are numbered, and of CSV and JSON
it is counted which record a line is. Only the columns are read that the query reads: of a malformed line,
Spark makes something else of all columns than of some.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spark_agent.driver import partitions
from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.files.numbered_rows import numbered
from spark_agent.sql.files.scans import format_of, unlike_lines
from spark_agent.sql.rerun.plan_frames import Frames
from spark_agent.sql.rerun.row_conditions import RowError
from spark_agent.sql.types import Expression, Plan

_NOT_BLANK = r"[^\x00-\x20]"
_NUMBERED = ("text", "csv", "json", "orc")

LeaveOut = Callable[[Any], None]


class InputRows:
    """Of one application. `leave_out` is given the DataFrames whose queries are no part of the job."""

    def __init__(self, catalyst: Catalyst, frames: Frames, leave_out: LeaveOut) -> None:
        self._catalyst, self._frames, self._leave_out = catalyst, frames, leave_out

    def plan(self, query: Plan, scan: Plan, path: str, row: int) -> Plan:
        """Row `row` of a file (from 0) with the columns of a scan of `query`. Raises RowError."""
        catalyst = self._catalyst
        files = catalyst.look(scan).files
        assert files is not None
        format, options = format_of(files), files["options"]
        if (unlike := unlike_lines(format, options)) or format not in ("parquet", *_NUMBERED):
            raise RowError(f"{path}: rows of {format} files {unlike} cannot be looked for".replace("  ", " "))
        has_header = format == "csv" and options.get("header", "false").lower() == "true"
        number = self._record(path, format, row, has_header=has_header)
        columns, read = catalyst.items(scan.output()), _columns_read(catalyst, query, scan)
        places = [at for at, column in enumerate(columns) if _id(column) in read]
        literal = self._literal(scan, path, format, number, places)
        if literal is None:
            raise _no_row(path, row)
        values = {at: catalyst.field(literal, field) for field, at in enumerate(places)}
        fields = [
            catalyst.alias_as(values.get(at) or catalyst.null(column.dataType()), column)
            for at, column in enumerate(columns)
        ]
        return catalyst.project(fields, catalyst.one_row())

    # -- which record a line is --------------------------------------------------------------------------

    def _record(self, path: str, format: str, row: int, *, has_header: bool) -> int:
        """The number of the record that a row of a file is."""
        if format not in ("csv", "json"):
            return row
        from pyspark.sql import functions as F

        lines = numbered(self._frames.spark(), path, "text", leave_out=self._leave_out)
        lines = lines.where(F.col("row") <= row).select(
            (F.col("row") == row).alias("is_row"),
            F.col("value").rlike(_NOT_BLANK).alias("is_record"),
            F.col("value").rlike(r"^\s*\[").alias("is_list"),
        )
        counts = lines.groupBy("is_row", "is_record", "is_list").count()
        self._leave_out(counts)
        rows = counts.collect()
        if not any(one.is_row for one in rows):
            raise _no_row(path, row)
        if any(one.is_row and not one.is_record for one in rows):
            raise RowError(f"{path}: row {row} is a blank line, which is no record")
        if format == "json" and any(one.is_list for one in rows):
            raise RowError(f"{path}: a line that is a list of objects is several records")
        before = sum(one["count"] for one in rows if one.is_record and not one.is_row)
        if has_header and not before:
            raise RowError(f"{path}: row {row} is the header")
        return int(before) - has_header

    # -- its values --------------------------------------------------------------------------------------

    def _literal(
        self, scan: Plan, path: str, format: str, number: int, places: list[int]
    ) -> Expression | None:
        """A struct of the values of these columns, which never leave the JVM; None of no row."""
        from pyspark.sql import functions as F

        catalyst = self._catalyst
        renewed = catalyst.renewed(catalyst.unlike_cached(scan))  # the user's own queries are not left out
        frame = self._frames.of(renewed)
        self._leave_out(frame)
        in_file = F.col("_metadata.file_path").isin(*_names(scan, path))
        if format == "parquet":
            chosen = frame.where(in_file & (F.col("_metadata.row_index") == number))
        else:
            chosen = self._numbered(frame.where(in_file), number)
        output = catalyst.items(renewed.output())
        columns = [catalyst.alias(output[at], f"lineage_{at}") for at in places]
        rows = self._frames.take(catalyst.project(columns, chosen._jdf.queryExecution().analyzed()), 2)
        if len(rows) != 1:
            return None
        schema = self._frames.struct((f"f{at}", output[at].dataType()) for at in places)
        return catalyst.literal(rows[0].copy(), schema)

    def _numbered(self, frame: Any, number: int) -> Any:
        """The record of that number. Splits are counted once, as `numbered_rows` does it."""
        from pyspark.sql import functions as F

        rows = frame.withColumns(
            {
                "lineage_split": F.col("_metadata.file_block_start"),
                "lineage_id": F.monotonically_increasing_id(),
            }
        )
        self._leave_out(rows)
        counted = rows.groupBy("lineage_split").agg(F.min("lineage_id"), F.count("*"))
        self._leave_out(counted)
        before = 0
        for split, first, count in sorted(map(tuple, counted.collect())):
            if number < before + count:
                is_row = F.col("lineage_id") == first + number - before
                return rows.where((F.col("lineage_split") == split) & is_row)
            before += count
        return rows.where(F.lit(False))


def _columns_read(catalyst: Catalyst, query: Plan, scan: Plan) -> set[int]:
    """Those that the scan of a query has to read: as Spark decides it, by what stands right above."""
    every = set(catalyst.column_ids(scan))
    above = _above(catalyst, query, every)
    read: set[int] = set()
    for plan in above:
        read |= catalyst.column_ids_read(plan)
        if catalyst.kind(plan) in ("Project", "Aggregate"):
            return read & every
        if catalyst.kind(plan) != "Filter":
            break
    return every


def _above(catalyst: Catalyst, plan: Plan, columns: set[int]) -> list[Plan]:
    """The operators above a scan, the nearest first."""
    for child in catalyst.items(plan.children()):
        leaves = catalyst.items(child.collectLeaves())
        if any(set(catalyst.column_ids(leaf)) == columns for leaf in leaves):
            return [*_above(catalyst, child, columns), plan]
    return []


def _names(scan: Plan, path: str) -> list[str]:
    """What Spark may call a file in `_metadata`."""
    names: list[str] = []
    for name in scan.relation().location().inputFiles():
        if partitions.local_path(str(name)) == path:
            names.append(str(name))
    return [*names, path, f"file:{path}", f"file://{path}"]


def _id(column: Expression) -> int:
    return int(column.exprId().id())


def _no_row(path: str, row: int) -> RowError:
    return RowError(f"{path} has no row {row} (rows count from 0)")

"""What two runs wrote, row by row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lineage_service.lineage.results import Result, doc


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun(Result):
    """One of the two runs that are compared: an application, and the sink that wrote the rows."""

    application_id: str = field(metadata=doc("Spark's `applicationId`."))
    name: str = field(metadata=doc("Spark's `spark.app.name`."))
    started: int = field(metadata=doc("Unix time in milliseconds."))
    node_id: str = field(metadata=doc("The sink: `APPLICATION_ID#NUMBER`."))
    dataset: str = field(metadata=doc("What it wrote, as a job would write it."))
    rows: int | None = field(metadata=doc("Number of rows that it wrote; null if they were not counted."))
    complete: bool = field(metadata=doc("The lineage of the application is complete."))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedInput(Result):
    """A row of an input that is not the same in both runs."""

    path: str = field(metadata=doc("Path of the file: in the later run, if it is there."))
    row: int = field(metadata=doc("Counted from 0, header lines included."))
    line: int = field(metadata=doc("`row` + 1, for people."))
    was: str | None = field(metadata=doc("Text of the row in the earlier run; null if it had none there."))
    is_: str | None = field(
        metadata=doc("Text of the row in the later run; null if it has none there.", name="is")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRow(Result):
    """A row that only one of the runs wrote."""

    key: dict[str, Any] | None = field(metadata=doc("Its key; null without one."))
    record: str = field(metadata=doc("The record that it is, `NODE_ID#RECORD_ID`: a trace can start there."))
    path: str | None = field(metadata=doc("Path of the file."))
    row: int | None = field(metadata=doc("Counted from 0, header lines included."))
    columns: dict[str, Any] = field(metadata=doc("The row by its columns; of text the one column `value`."))
    because: tuple[ChangedInput, ...] | None = field(
        metadata=doc(
            "Input rows behind it that the other run does not have, or has otherwise; null if they were not "
            "looked up."
        )
    )
    because_note: str = field(
        default="", metadata=doc("Why `because` is null or may lack or have too many rows; else empty.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRow(Result):
    """A row that both runs wrote, with other values."""

    key: dict[str, Any] | None = field(
        metadata=doc("Its key; null without one: the two were made of the same input rows.")
    )
    was: dict[str, Any] = field(metadata=doc("The row of the earlier run, by its columns."))
    is_: dict[str, Any] = field(metadata=doc("The row of the later run, by its columns.", name="is"))
    was_record: str = field(metadata=doc("The record that it was, `NODE_ID#RECORD_ID`."))
    is_record: str = field(metadata=doc("The record that it is, `NODE_ID#RECORD_ID`."))
    columns: tuple[str, ...] = field(metadata=doc("Names of the columns whose values differ."))
    because: tuple[ChangedInput, ...] | None = field(
        metadata=doc(
            "Input rows behind it that are not the same in both runs; null if they were not looked up."
        )
    )
    because_note: str = field(
        default="", metadata=doc("Why `because` is null or may lack or have too many rows; else empty.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Result):
    """What two runs wrote, row by row."""

    runs: tuple[ComparedRun, ...] = field(metadata=doc("The earlier run and the later one."))
    key: tuple[str, ...] = field(metadata=doc("The columns by which rows are paired; empty without a key."))
    gone: tuple[ComparedRow, ...] = field(metadata=doc("Rows of the earlier run only, at most `limit`."))
    new: tuple[ComparedRow, ...] = field(metadata=doc("Rows of the later run only, at most `limit`."))
    changed: tuple[ChangedRow, ...] = field(metadata=doc("Rows with other values, at most `limit`."))
    same: int | None = field(metadata=doc("Number of equal rows; null if rows could not be compared."))
    gone_total: int | None = field(metadata=doc("Number of rows that are gone; null as above."))
    new_total: int | None = field(metadata=doc("Number of new rows; null as above."))
    changed_total: int | None = field(metadata=doc("Number of changed rows; null as above."))
    complete: bool = field(
        metadata=doc("Everything was compared, and the lineage of both applications is complete.")
    )
    exact: bool = field(
        metadata=doc(
            "False: some trace behind `because` has only an upper bound, or was not read to its end."
        )
    )
    truncated: bool = field(metadata=doc("True: more rows differ than are listed."))
    warnings: tuple[str, ...] = field(metadata=doc("What was not compared, and why."))

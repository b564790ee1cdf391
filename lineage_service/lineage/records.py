"""Records of one node, the rows of files that they are, and rows at which a trace can start."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lineage_service.lineage.places import Column
from lineage_service.lineage.results import Direction, Result, doc


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow(Result):
    """A row of a file."""

    path: str = field(metadata=doc("Path of the file."))
    row: int = field(metadata=doc("Counted from 0, header lines included."))
    line: int = field(metadata=doc("`row` + 1, for people."))
    text: str | None = field(metadata=doc("The row; null if it cannot be read."))
    warning: str | None = field(
        metadata=doc(
            "Why there is no text, or why it may not be what the job read, and what to do; else null."
        )
    )
    columns: dict[str, Any] | None = field(
        default=None,
        metadata=doc(
            "With `columns`, of Parquet, ORC, CSV and JSON: the row by its columns, those of its folders "
            "first. Whole numbers beyond 2^53 - 1, decimals, NaN and infinities are strings.",
            omit_none=True,
        ),
    )
    columns_cut: bool | None = field(
        default=None,
        metadata=doc(
            "True if columns are left out or values cut, because they are many or long.", omit_none=True
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(Result):
    """One record of a node."""

    record_id: str = field(
        metadata=doc("`PARTITION#OFFSET`, `read#PARTITION#ROW` at a source, `write#PARTITION#ROW` at a sink.")
    )
    partition: int = field(metadata=doc("Number of the partition of its node."))
    offset: int = field(metadata=doc("Offset in the partition, from 0."))
    key: str | None = field(default=None, metadata=doc("Present if it has a known key.", omit_none=True))
    value: str | None = field(default=None, metadata=doc("Present if it was captured.", omit_none=True))
    value_type: str | None = field(
        default=None,
        metadata=doc(
            "Type of the value: str, int, float, bool, none, bytes (hex), json, repr, or withheld.",
            omit_none=True,
        ),
    )
    source: SourceRow | None = field(
        default=None, metadata=doc("At sources and sinks: the row of the file.", omit_none=True)
    )
    operation: str | None = field(
        default=None,
        metadata=doc(
            "At sinks, what a statement of a table did: insert, update, copy (it wrote the row as it was),"
            " delete, or change (it is a row of a change data feed, and none of the table); where that is"
            " known.",
            omit_none=True,
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark(Result):
    """A row whose value in one column is far from those of all others. A hint, no proof."""

    record_id: str = field(metadata=doc("The record that is this row."))
    path: str = field(metadata=doc("Path of the file."))
    row: int = field(metadata=doc("Counted from 0, header lines included."))
    line: int = field(metadata=doc("`row` + 1, for people."))
    column: str = field(metadata=doc("The column; `column 3` of a row that is only text, counted from 1."))
    value: float = field(metadata=doc("Its value."))
    low: float = field(metadata=doc("The least value of the other rows."))
    high: float = field(metadata=doc("The largest value of the other rows."))
    text: str = field(metadata=doc("The same as a sentence."))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPage(Result):
    """One page of a node's records."""

    node_id: str = field(metadata=doc("The node of these records."))
    total: int | None = field(metadata=doc("Number of matches; null if they were not counted."))
    records: tuple[Record, ...] = field(metadata=doc("The records of this page, by partition and offset."))
    next: str | None = field(
        metadata=doc(
            "`cursor` of the next page; null on the last. Other pages may hold fewer records than `limit`."
        )
    )
    warnings: tuple[str, ...] = field(default=(), metadata=doc("What a search could not read, and why."))
    schema: tuple[Column, ...] | None = field(
        default=None,
        metadata=doc("With `columns`: the columns of the listed rows, with types.", omit_none=True),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(Result):
    """A row at which a trace can start."""

    node_id: str = field(metadata=doc("The node of the record that it is."))
    record_id: str = field(metadata=doc("Id of that record."))
    path: str | None = field(metadata=doc("Path of the file; null of records that are no rows of files."))
    row: int | None = field(metadata=doc("Counted from 0, header lines included."))
    line: int | None = field(metadata=doc("`row` + 1, for people."))
    columns: dict[str, Any] | None = field(metadata=doc("The row by its columns; null if it has none."))
    text: str | None = field(metadata=doc("The row; null if it cannot be read."))
    warning: str | None = field(default=None, metadata=doc("Why it may not be what the job had; else null."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices(Result):
    """The rows of a dataset that fulfil a condition: a trace starts at one of them, or at all."""

    application_id: str = field(
        metadata=doc(
            "The application that was asked; of a table the newest that wrote a listed row. If none of them "
            "is known: the last that wrote the table, else that read it."
        )
    )
    name: str = field(metadata=doc("Its name."))
    started: int = field(metadata=doc("Unix time in milliseconds."))
    direction: Direction = field(metadata=doc("Where a trace goes: `backward` from what was written."))
    dataset: str | None = field(metadata=doc("Its path; null of what has no files."))
    where: str | None = field(metadata=doc("As requested."))
    version: str | None = field(
        default=None, metadata=doc("Of a table: the version that was searched.", omit_none=True)
    )
    nodes: tuple[str, ...] = field(metadata=doc("Ids of the sources or sinks whose records were searched."))
    total: int | None = field(metadata=doc("Number of matches; null if not everything was looked at."))
    files: int = field(metadata=doc("Number of files that the condition had to be looked for in."))
    choices: tuple[Choice, ...] = field(metadata=doc("By partition and offset of the records."))
    next: str | None = field(metadata=doc("`cursor` of the next page; null on the last."))
    warnings: tuple[str, ...] = field(default=(), metadata=doc("What was not looked at, or has changed."))

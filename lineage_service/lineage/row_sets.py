"""Row sets: which rows of an application's inputs some of its records were made of.

In JSON they have the shape of `spark_agent.contract.row_sets`, which the agent reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lineage_service.lineage.records import SourceRow
from lineage_service.lineage.results import Result, doc

__all__ = ["AskedRecord", "Ranges", "RowSet", "RowSetFile", "RowSetSource", "RowSetSplit"]

Ranges = tuple[tuple[int, int], ...]
"""`(first, count)`, in order, not touching."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSetFile(Result):
    """The rows of one file."""

    path: str = field(metadata=doc("Path of the file."))
    size: int | None = field(metadata=doc("Its bytes when the job read it; null if unknown."))
    modified: int | None = field(metadata=doc("Its time then, in Unix milliseconds; null if unknown."))
    rows: Ranges = field(
        metadata=doc("Ranges `[first, count]` of rows, counted from 0, header lines included.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSetSplit(Result):
    """The records of one partition of a source."""

    split: int = field(metadata=doc("Number of the partition."))
    positions: Ranges = field(metadata=doc("Ranges `[first, count]` of offsets in it, from 0."))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSetSource(Result):
    """A source of the application, and which of its rows are meant."""

    node: int = field(metadata=doc("Number of the source in the application."))
    name: str = field(metadata=doc("The operation, for example `textFile`."))
    call_site: str | None = field(metadata=doc("File and line of the job that called it; or null."))
    path: str | None = field(metadata=doc("What it reads; null of what is no file, folder or table."))
    whole: bool = field(metadata=doc("True: all of its rows are meant, and `why` says for which reason."))
    why: str | None = field(metadata=doc("Why all rows are meant, or why some rows have no files; or null."))
    partitions: int | None = field(metadata=doc("How many it has; null if unknown."))
    total: int | None = field(metadata=doc("How many records the job read of it; null if unknown."))
    files: tuple[RowSetFile, ...] = field(metadata=doc("The rows by file. Empty if `whole`."))
    splits: tuple[RowSetSplit, ...] = field(metadata=doc("The records by partition. Empty if `whole`."))
    listed: tuple[SourceRow, ...] = field(metadata=doc("The first rows with their texts, `limit` at most."))

    @property
    def count(self) -> int:
        """How many records are meant, if not all."""
        return sum(count for split in self.splits for _, count in split.positions)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRecord(Result):
    """A record that the rows were traced from."""

    node: int = field(metadata=doc("Number of its operation."))
    record_id: str = field(metadata=doc("Its id there."))
    path: str | None = field(metadata=doc("The file that it is a row of; or null."))
    row: int | None = field(metadata=doc("Its row there, from 0; or null."))
    text: str | None = field(metadata=doc("The row; null if it cannot be read."))
    key: str | None = field(metadata=doc("Its key; null if it has none that is known."))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSet(Result):
    """Which rows of the sources of an application some records were made of."""

    application: str = field(metadata=doc("Spark's `applicationId`."))
    sources: tuple[RowSetSource, ...] = field(metadata=doc("All sources of the application, by number."))
    asked: tuple[AskedRecord, ...] = field(metadata=doc("The records that the rows were traced from."))
    exact: bool = field(metadata=doc("False: rows may be among these that took no part; `how` says why."))
    complete: bool = field(metadata=doc("False: rows may be missing."))
    how: str | None = field(metadata=doc("What is not known, in words; else null."))

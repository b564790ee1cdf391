"""What a sift found: the fewest input rows on which a job still fails."""

from __future__ import annotations

from dataclasses import dataclass, field

from lineage_service.lineage.results import Result, doc


@dataclass(frozen=True, slots=True, kw_only=True)
class SiftedRow(Result):
    """An input row that it takes to fail."""

    record: str = field(metadata=doc("The record of the source in the original, `NODE_ID#RECORD_ID`."))
    path: str | None = field(metadata=doc("Path of the file; null of what is no row of a file."))
    row: int | None = field(metadata=doc("Counted from 0, header lines included; else null."))
    line: int | None = field(metadata=doc("`row` + 1, for people; else null."))
    text: str | None = field(metadata=doc("The row; null if it cannot be read."))


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingOutput(Result):
    """An output row of the original that was found wrong."""

    path: str = field(metadata=doc("The file that it is a row of."))
    row: int = field(metadata=doc("Its row there, from 0, header lines included."))
    line: int = field(metadata=doc("`row` + 1, for people."))
    text: str = field(metadata=doc("The row."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sift(Result):
    """The smallest part of an application's input that still fails."""

    sift: str = field(metadata=doc("Its id: the name of its sandbox."))
    application_id: str = field(metadata=doc("The application that was run again."))
    test: str = field(metadata=doc("What failing means, in words."))
    rows: tuple[SiftedRow, ...] = field(metadata=doc("The rows, the first 1,000."))
    total: int = field(metadata=doc("How many these are, listed or not."))
    of: int = field(metadata=doc("How many rows it was sought among."))
    outputs: tuple[FailingOutput, ...] = field(metadata=doc("The wrong outputs, the first 1,000."))
    tests: int = field(metadata=doc("How often the job ran."))
    sufficient: bool = field(metadata=doc("The job fails on these rows alone."))
    necessary: bool | None = field(
        metadata=doc("On the other rows that were looked at it does not fail. Null: not known.")
    )
    minimal: bool = field(metadata=doc("Without any single one of these rows it does not fail."))
    whole: bool = field(
        metadata=doc("The lineage of what is wrong did not fail, so all rows of the inputs were sifted.")
    )
    unresolved: int = field(metadata=doc("Runs that ended in another way. They count as not failing."))
    exact: bool = field(
        metadata=doc("False: a source was not restricted, so a row of it may be needed, too.")
    )
    sandbox: str = field(metadata=doc("Folder with what the job printed."))
    seconds: float = field(metadata=doc("How long it took."))
    saved: str | None = field(
        metadata=doc("Folder of the files of just these rows; null if none was asked for.")
    )
    notes: tuple[str, ...] = field(metadata=doc("What was read whole, why runs are unresolved, and more."))

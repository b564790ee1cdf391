"""What became of rows of inputs that are in no output: where each ended, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lineage_service.lineage.records import Choice, Record
from lineage_service.lineage.results import Result, doc


@dataclass(frozen=True, slots=True, kw_only=True)
class RowEnd(Result):
    """An operation at which a row ended, or may have ended."""

    node_id: str = field(metadata=doc("`APPLICATION_ID#NUMBER`."))
    name: str = field(metadata=doc("The operation, for example `Filter`."))
    description: str = field(metadata=doc("What it does, as captured by the agent."))
    call_site: str = field(metadata=doc("File and line of the job that created it."))
    why: str = field(metadata=doc("Why a row ends there, in words: `filter: amount > 5`."))


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedOutput(Result):
    """A sink, named for people."""

    node_id: str = field(metadata=doc("`APPLICATION_ID#NUMBER`."))
    name: str = field(metadata=doc("The operation, for example `saveAsTextFile`."))
    description: str = field(metadata=doc("What it wrote, if it did."))
    call_site: str = field(metadata=doc("File and line of the job that called it."))
    exact: bool = field(
        default=True,
        metadata=doc("False: an operation on the way is an upper bound, so the row may not be in it."),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOfInput(Result):
    """A row of an input, as a record of one node."""

    application_id: str = field(metadata=doc("Spark's `applicationId`."))
    node_id: str = field(metadata=doc("The node that read it: `APPLICATION_ID#NUMBER`."))
    record_id: str | None = field(
        metadata=doc("Its record there: `read#PARTITION#ROW`; null if a condition was pushed into the scan.")
    )
    path: str | None = field(metadata=doc("Path of its file; null if it has none."))
    row: int | None = field(metadata=doc("Counted from 0, header lines included."))
    line: int | None = field(metadata=doc("`row` + 1, for people."))
    text: str | None = field(metadata=doc("The row, or the captured value; null if neither is known."))
    columns: dict[str, Any] | None = field(metadata=doc("The row by its columns; null if it has none."))


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingRow(RowOfInput):
    """A row that is not in some outputs, and one end of it on its way there."""

    ended: RowEnd | None = field(metadata=doc("The operation; null if it is one of `candidates`."))
    candidates: tuple[RowEnd, ...] = field(
        metadata=doc("Where it is not known which operation it was: one of these, in the order of rows.")
    )
    last: tuple[Record, ...] = field(metadata=doc("What was made of it last, at most five records."))
    last_node_id: str = field(metadata=doc("The node of these records."))
    last_total: int = field(metadata=doc("How many they are, listed or not."))
    outputs: tuple[MissedOutput, ...] = field(metadata=doc("The outputs that it is not in because of this."))
    exact: bool = field(metadata=doc("True: it ended there. False: it may have ended there."))
    reason: str = field(metadata=doc("Why it is not exact; else empty."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate(Result):
    """An operation that made one record of several equal rows of an input."""

    node_id: str = field(metadata=doc("`APPLICATION_ID#NUMBER`."))
    name: str = field(metadata=doc("The operation, for example `distinct`."))
    description: str = field(metadata=doc("What it does, as captured by the agent."))
    call_site: str = field(metadata=doc("File and line of the job that created it."))
    why: str = field(metadata=doc("In words: how many rows became one there."))
    total: int = field(metadata=doc("How many rows became one, this row included."))
    equal: tuple[Record, ...] = field(metadata=doc("The others, at most five records of the input."))
    exact: bool = field(metadata=doc("False: an operation on the way is an upper bound."))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachedRow(RowOfInput):
    """A row, and the outputs that it is in."""

    outputs: tuple[MissedOutput, ...] = field(metadata=doc("Outputs that it went into."))
    duplicates: tuple[Duplicate, ...] = field(
        default=(), metadata=doc("Where it was one of several equal rows that became one.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedInput(Result):
    """An input of an output, and which of its rows fulfil the condition."""

    application_id: str = field(metadata=doc("Spark's `applicationId`, of who read it."))
    node_id: str = field(metadata=doc("`APPLICATION_ID#NUMBER`."))
    name: str = field(metadata=doc("The operation, for example `Scan csv`."))
    dataset: str = field(metadata=doc("What it read, as captured by the agent."))
    condition: str | None = field(
        metadata=doc("The condition on the columns that it has; null if it has none of them.")
    )
    lacks: tuple[str, ...] = field(metadata=doc("Columns of the condition that it does not have."))
    matches: int | None = field(
        metadata=doc("How many of its rows fulfil it; null if there are more than were counted.")
    )
    note: str = field(metadata=doc("What was not looked at, and why; else empty."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing(Result):
    """What became of rows of inputs."""

    application_id: str = field(metadata=doc("Spark's `applicationId`."))
    name: str = field(metadata=doc("Spark's `spark.app.name`."))
    rows: tuple[MissingRow, ...] = field(
        metadata=doc("One entry for each end of each row that is not in an output.")
    )
    reached: tuple[ReachedRow, ...] = field(metadata=doc("Rows with the outputs that they are in."))
    complete: bool = field(
        metadata=doc("False: lineage is missing, so a row may be in an output that is not named.")
    )
    inputs: tuple[AskedInput, ...] | None = field(
        default=None,
        metadata=doc("With `where` of an output: the inputs that were looked at.", omit_none=True),
    )
    present: tuple[Choice, ...] | None = field(
        default=None,
        metadata=doc("With `where` of an output: its rows that fulfil the condition.", omit_none=True),
    )
    truncated: bool = field(
        default=False, metadata=doc("More rows fulfil the condition than are listed: ask for fewer.")
    )
    warnings: tuple[str, ...] = field(default=(), metadata=doc("What was not looked at, and why."))

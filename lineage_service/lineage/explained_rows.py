"""Input rows of explanations, those that were demanded among them, and how these lead to a record."""

from __future__ import annotations

from dataclasses import dataclass, field

from lineage_service.lineage.meetings import MeetingSide
from lineage_service.lineage.records import Record
from lineage_service.lineage.results import Result, doc


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRecord(Result):
    """An input record, with the row of a file that it is."""

    node_id: str = field(metadata=doc("The source: `APPLICATION_ID#NUMBER`."))
    name: str = field(metadata=doc("The operation, for example `textFile`."))
    record_id: str = field(metadata=doc("Its id there: `read#PARTITION#ROW`."))
    path: str | None = field(metadata=doc("Path of the file; null if it is no row of a file."))
    row: int | None = field(metadata=doc("Counted from 0, header lines included; or null."))
    line: int | None = field(metadata=doc("`row` + 1, for people; or null."))
    text: str | None = field(
        metadata=doc("The row; without a file its captured value or key. Null if neither can be read.")
    )
    warning: str | None = field(
        metadata=doc("Why the text may not be what the job read, and what to do; else null.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedRow(InputRecord):
    """An input record of an explanation, with the row of a file that it is."""

    counts_for: tuple[MeetingSide, ...] | None = field(
        default=None,
        metadata=doc("With `same`: which of the two records it counts for.", omit_none=True, name="of"),
    )
    demanded: bool | None = field(
        default=None, metadata=doc("True if it was demanded, by `with`.", omit_none=True)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WayRecord(Result):
    """A record on the way from a demanded row to a record that is explained."""

    node_id: str = field(metadata=doc("The operation: `APPLICATION_ID#NUMBER`."))
    name: str = field(metadata=doc("The operation, for example `join`."))
    loop: str | None = field(
        metadata=doc("File and line of the loop, if this is what one of its turns gave; or null.")
    )
    turn: int | None = field(metadata=doc("That turn: 0 is what the loop began with; or null."))
    record: Record = field(metadata=doc("The record."))


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandedRow(InputRecord):
    """A row that was demanded, and whether and how it leads to the records that are explained."""

    in_trace: bool = field(
        metadata=doc("True: it is in the plain trace. False: the records were not made of it.")
    )
    exact: bool = field(
        metadata=doc("False: an operation behind it is an upper bound, so it may not lead there.")
    )
    way: tuple[WayRecord, ...] = field(
        metadata=doc(
            "The shortest way from the row to one of the records, both included, at most 1,000 records. "
            "Empty if there is none, or if too many were looked at."
        )
    )
    note: str = field(metadata=doc("What is not so, or not known, in a sentence; else empty."))

"""What two explained records share: values, input rows, and the last records that both need."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from lineage_service.lineage.records import Record
from lineage_service.lineage.results import Result, doc
from lineage_service.lineage.traces import TraceStart

#: The two records of a question, in its order.
MeetingSide = Literal["A", "B"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedText(Result):
    """A text that both records have."""

    what: str = field(
        metadata=doc(
            "`key`, `value`, or `field N` of the row or value, counted from 1; of an object in JSON, "
            "`field NAME`."
        )
    )
    text: str = field(metadata=doc("The text."))


@dataclass(frozen=True, slots=True, kw_only=True)
class MeetingPoint(Result):
    """The last operation with records that both explanations need."""

    node_id: str = field(metadata=doc("The operation: `APPLICATION_ID#NUMBER`."))
    name: str = field(metadata=doc("The operation, for example `reduceByKey`."))
    loop: str | None = field(
        metadata=doc("File and line of the loop, if these records are what one of its turns gave; or null.")
    )
    turn: int | None = field(metadata=doc("That turn: 0 is what the loop began with; or null."))
    total: int = field(metadata=doc("How many records both need there, listed or not."))
    records: tuple[Record, ...] = field(metadata=doc("These records, at most `limit`."))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedSide(Result):
    """One of two records that are explained together. A key may stand for several."""

    starts: tuple[TraceStart, ...] = field(metadata=doc("The record, by operation."))
    total: int = field(metadata=doc("How many input rows explain it."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting(Result):
    """What two records, A and B, have in common."""

    equal: bool | None = field(
        metadata=doc(
            "True: they have a key, a value or a field in common. False: they do not, so nothing explains "
            "that they are one. Null: the values of one are not known."
        )
    )
    shared: tuple[SharedText, ...] = field(metadata=doc("What both have: equal keys, values and fields."))
    a: ExplainedSide = field(metadata=doc("The first one."))
    b: ExplainedSide = field(metadata=doc("The second one."))
    both_total: int = field(metadata=doc("How many input rows count for both."))
    meets: MeetingPoint | None = field(
        metadata=doc("Where the two explanations meet; null if they share no record.")
    )

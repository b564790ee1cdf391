"""Why two records have the same key or value: what they share, and where their explanations meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import ExplainedSide, Meeting, TraceStart
from lineage_service.queries import ExplanationQuery, TraceQuery
from lineage_service.tracing.columns.store_cursor import StoreCursor
from lineage_service.tracing.explain import meeting_point
from lineage_service.tracing.explain.explanation import Explanation
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.query.explained_records import ExplainedRecords
from lineage_service.tracing.query.open_applications import Opened
from lineage_service.tracing.query.requested_columns import RequestedColumns
from lineage_service.tracing.query.shared_texts import shared_texts
from lineage_service.tracing.query.shown_starts import shown_starts
from lineage_service.tracing.query.trace_starts import TraceStarts
from lineage_service.tracing.walk.result import Position

__all__ = ["ExplainedPair", "check_same"]


def check_same(query: ExplanationQuery) -> None:
    """Raises InvalidQueryError."""
    if query.same and len(query.starts) != 2:
        raise InvalidQueryError(
            f"same is a question about two records, A and B, and {len(query.starts):,} are named"
        )
    if query.same and any(start.failure is not None for start in query.starts):
        raise InvalidQueryError(
            "same is a question about records that were made: the record of a failure was not"
        )


@dataclass(frozen=True, slots=True)
class ExplainedPair:
    """Two records, A and B, and where their explanations meet."""

    sides: tuple[Sequence[Position], Sequence[Position]]
    meeting: meeting_point.Meeting

    @classmethod
    def of(
        cls,
        opened: Opened,
        starts: TraceStarts,
        cursor: StoreCursor,
        asked: TraceQuery,
        check: Check,
    ) -> ExplainedPair:
        """Of the two starts of a query. Raises LineageError."""
        first, second = (
            starts.named(opened, cursor, replace(asked, starts=(start,)), check)
            for start in asked.starts or ()
        )
        if _places(first) == _places(second):
            raise InvalidQueryError("A and B are the same record: name two")
        return cls((first, second), meeting_point.meet(opened.snapshot, first, second, check))

    def shown(self, records: ExplainedRecords, explained: Explanation, asked: TraceQuery) -> Meeting:
        """As people see it. `explained` is the explanation of both together."""
        first, second = (_starts(records, side, asked) for side in self.sides)
        equal, shared = shared_texts(
            *([record for start in side for record in start.records] for side in (first, second))
        )
        of_first, of_second = map(meeting_point.total, self.meeting.rows)
        return Meeting(
            equal=equal,
            shared=shared,
            a=ExplainedSide(starts=first, total=of_first),
            b=ExplainedSide(starts=second, total=of_second),
            both_total=of_first + of_second - explained.total,
            meets=records.meeting_point(self.meeting),
        )


def _places(positions: Sequence[Position]) -> set[tuple[int, int, int]]:
    return {(at.node, at.partition, at.offset) for at in positions}


def _starts(records: ExplainedRecords, side: Sequence[Position], asked: TraceQuery) -> tuple[TraceStart, ...]:
    columns = RequestedColumns(None)
    return tuple(
        shown_starts(records.show, records.opened, records.cursor, side, asked, records.check, columns)
    )

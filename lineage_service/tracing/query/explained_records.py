"""Records of an explanation as people see them: input rows, what turns gave, where two explanations meet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lineage_service.lineage import (
    ExplainedRow,
    ExplanationTurn,
    InputRecord,
    MeetingPoint,
    MeetingSide,
    Record,
)
from lineage_service.tracing.columns.store_cursor import StoreCursor
from lineage_service.tracing.explain import explanation
from lineage_service.tracing.explain.meeting_point import Meeting
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.query.open_applications import Opened
from lineage_service.tracing.query.shown_records import Show
from lineage_service.tracing.walk.result import Position
from spark_agent import contract

__all__ = ["SIDES", "ExplainedRecords", "Place"]

_NO_RUN = 0
SIDES: tuple[MeetingSide, MeetingSide] = ("A", "B")


class Place(NamedTuple):
    """Of a record of a source, in the order of lists."""

    node: int
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class ExplainedRecords:
    """Of one answer, at most `limit` of each list. With `meeting`, rows say for which of two they count."""

    opened: Opened
    cursor: StoreCursor
    show: Show
    limit: int
    check: Check
    meeting: Meeting | None = None
    demanded: frozenset[Place] = frozenset()

    def rows(self, places: Sequence[Place]) -> tuple[ExplainedRow, ...]:
        """Of sources."""
        return tuple(self._rows([Position(*place, self._holder(place)) for place in places]))

    def turn(self, turn: explanation.Turn) -> ExplanationTurn:
        return ExplanationTurn(
            loop=turn.loop,
            turn=turn.turn,
            node_id=self.node_id(turn.node),
            name=self._name(turn.node),
            total=turn.total,
            records=tuple(record for _, record in self.records(turn.positions[: self.limit])),
            until=turn.until[: self.limit],
            rows_total=turn.sources_total,
            rows=tuple(self._rows(turn.sources[: self.limit])),
        )

    def meeting_point(self, meeting: Meeting) -> MeetingPoint | None:
        if meeting.node is None:
            return None
        places = [
            Place(meeting.node, partition, offset)
            for partition, offsets in meeting.partitions.items()
            for offset in offsets[: self.limit].tolist()
        ]
        positions = [Position(*place, self._holder(place)) for place in places[: self.limit]]
        return MeetingPoint(
            node_id=self.node_id(meeting.node),
            name=self._name(meeting.node),
            loop=meeting.loop,
            turn=meeting.turn,
            total=sum(map(len, meeting.partitions.values())),
            records=tuple(record for _, record in self.records(positions)),
        )

    def _rows(self, positions: Sequence[Position]) -> Iterator[ExplainedRow]:
        for position, record in self.records(positions):
            yield self._row(position, record)

    def records(self, positions: Sequence[Position]) -> Iterator[tuple[Position, Record]]:
        """In the order of the positions; each node is asked once."""
        by_node: dict[int, list[Position]] = {}
        for position in positions:
            by_node.setdefault(position.node, []).append(position)
        records: dict[Position, Record] = {}
        for number, of_node in by_node.items():
            node = self.opened.graph.topology.nodes[number]
            shown = self.show(self.opened, self.cursor, node, of_node, values=True, check=self.check)
            records |= zip(of_node, shown, strict=True)
        return ((position, records[position]) for position in positions)

    def _holder(self, place: Place) -> int:
        """The run whose record is shown. One that failed is none of those that count: it has no texts."""
        runs = self.opened.graph.holders_of(place.node, place.partition, "backward")
        return next((run.number for run in runs), _NO_RUN)

    def node_id(self, number: int) -> str:
        return contract.node_id(self.opened.application.application_id, number)

    def _name(self, number: int) -> str:
        return self.opened.graph.topology.nodes[number].name

    def input_records(self, places: Sequence[Place]) -> list[InputRecord]:
        """Of sources, whatever they explain."""
        positions = [Position(*place, self._holder(place)) for place in places]
        return [InputRecord(**self._input(position, record)) for position, record in self.records(positions)]

    def _row(self, position: Position, record: Record) -> ExplainedRow:
        place = Place(position.node, position.partition, position.offset)
        return ExplainedRow(
            **self._input(position, record),
            counts_for=None if self.meeting is None else self._counts_for(self.meeting, place),
            demanded=True if place in self.demanded else None,
        )

    def _input(self, position: Position, record: Record) -> dict[str, Any]:
        """The fields of an `InputRecord`."""
        row = record.source
        return {
            "node_id": self.node_id(position.node),
            "name": self._name(position.node),
            "record_id": record.record_id,
            "path": None if row is None else row.path,
            "row": None if row is None else row.row,
            "line": None if row is None else row.line,
            "text": (record.value or record.key) if row is None else row.text,
            "warning": None if row is None else row.warning,
        }

    def _counts_for(self, meeting: Meeting, place: Place) -> tuple[MeetingSide, ...]:
        holders = meeting.holders(*place)
        return tuple(SIDES[holder] for holder in holders)

"""What two records share, in memory: the sets of records that decided each, and their last common one."""

from __future__ import annotations

from dataclasses import dataclass

from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import ExplainedSide, Meeting, MeetingPoint, MeetingSide
from lineage_service.queries import ExplanationQuery, StartQuery, TraceQuery
from lineage_service.testing.memory.decisions import decisive
from lineage_service.testing.memory.lineages import LineageIndex
from lineage_service.testing.memory.reach import trace_starts
from lineage_service.testing.memory.row_sets import starts_of
from lineage_service.tracing.query.shared_texts import shared_texts

__all__ = ["ExplainedPair"]


@dataclass(frozen=True)
class ExplainedPair:
    """Two records, A and B."""

    index: LineageIndex
    starts: tuple[StartQuery, StartQuery]
    needed: tuple[set[str], set[str]]

    @classmethod
    def of(cls, index: LineageIndex, query: ExplanationQuery) -> ExplainedPair:
        """Raises InvalidQueryError."""
        if len(query.starts) != 2 or any(start.failure is not None for start in query.starts):
            raise InvalidQueryError("same is a question about two records that were made")
        first, second = query.starts
        hashes = [starts_of(index, _trace(start))[1] for start in (first, second)]
        if set(hashes[0]) == set(hashes[1]):
            raise InvalidQueryError("A and B are the same record: name two")
        return cls(index, (first, second), (decisive(index, hashes[0]), decisive(index, hashes[1])))

    def holders(self, hash_: str) -> tuple[MeetingSide, ...]:
        names: tuple[MeetingSide, MeetingSide] = ("A", "B")
        return tuple(name for name, needed in zip(names, self.needed, strict=True) if hash_ in needed)

    def meeting(self, limit: int) -> Meeting:
        sides = zip(self.starts, self.needed, strict=True)
        first, second = (self._side(start, needed, limit) for start, needed in sides)
        both = self.needed[0] & self.needed[1]
        equal, shared = shared_texts(
            *([record for start in side.starts for record in start.records] for side in (first, second))
        )
        return Meeting(
            equal=equal,
            shared=shared,
            a=first,
            b=second,
            both_total=self._rows(both),
            meets=self._point(both, limit),
        )

    def _side(self, start: StartQuery, needed: set[str], limit: int) -> ExplainedSide:
        trace = _trace(start, limit)
        node, hashes = starts_of(self.index, trace)
        return ExplainedSide(
            starts=tuple(trace_starts(self.index, node, hashes, trace)), total=self._rows(needed)
        )

    def _rows(self, hashes: set[str]) -> int:
        return sum(self.index.records[hash_][0].kind == "source" for hash_ in hashes)

    def _point(self, both: set[str], limit: int) -> MeetingPoint | None:
        if not both:
            return None
        last = max((self.index.records[hash_][0] for hash_ in both), key=lambda node: node.node)
        records = sorted(
            (record for node, record in map(self.index.records.__getitem__, both) if node is last),
            key=lambda record: (record.partition, record.offset),
        )
        turn = next((turn for turn in self.index.lineage.turns if turn.node_id == last.node_id), None)
        return MeetingPoint(
            node_id=last.node_id,
            name=last.name,
            loop=None if turn is None else turn.loop,
            turn=None if turn is None else turn.turn,
            total=len(records),
            records=tuple(records[:limit]),
        )


def _trace(start: StartQuery, limit: int = 1) -> TraceQuery:
    return TraceQuery(direction="backward", starts=(start,), limit=limit)

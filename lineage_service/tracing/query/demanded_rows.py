"""Rows that explanations must have: whether they are in the plain trace, and how they lead there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import DemandedRow, WayRecord
from lineage_service.queries import ExplanationQuery, TraceQuery
from lineage_service.tracing.columns.store_cursor import StoreCursor
from lineage_service.tracing.explain.ways import Way, way_between
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.model.elements import in_words
from lineage_service.tracing.query.explained_records import ExplainedRecords, Place
from lineage_service.tracing.query.open_applications import Opened
from lineage_service.tracing.query.trace_starts import TraceStarts
from lineage_service.tracing.walk.result import Position

__all__ = ["DemandedRows", "check_demanded"]

#: Each is followed forward.
MOST_DEMANDED = 20
#: Records of one way that are listed.
MOST_ON_WAY = 1_000
_NOT_THERE = "It is no part of the trace: these records were not made of it."
_MAY_BE_LOST = "It is not known to be a part of the trace: what was made of it is not known everywhere."
_PERHAPS = "It may be no part of the trace: an operation behind it is an upper bound."
_TOO_MANY = "Too many records are between, so no way was looked for, and nothing was added beside the row."


def check_demanded(query: ExplanationQuery) -> None:
    """Raises InvalidQueryError."""
    if len(query.demanded) > MOST_DEMANDED:
        raise InvalidQueryError(
            f"{len(query.demanded):,} rows are demanded, and {MOST_DEMANDED} at once are the most"
        )
    if query.demanded and query.same:
        raise InvalidQueryError("same and with are two questions: ask one of them")


@dataclass(frozen=True, slots=True)
class DemandedRows:
    """Those of one question, with their ways."""

    ways: Sequence[tuple[Place, Way]]
    #: What is explained beside the records that were asked about: the rows, and what was joined with them.
    starts: Sequence[Position]

    @classmethod
    def of(
        cls,
        opened: Opened,
        named: TraceStarts,
        cursor: StoreCursor,
        query: ExplanationQuery,
        starts: Sequence[Position],
        check: Check,
    ) -> DemandedRows:
        """Raises LineageError."""
        ways: dict[Place, Way] = {}
        for start in query.demanded:
            forward = TraceQuery(direction="forward", starts=(start,), across=False)
            positions = named.named(opened, cursor, forward, check)
            by_place: dict[Place, list[Position]] = {}
            for at in positions:
                by_place.setdefault(Place(at.node, at.partition, at.offset), []).append(at)
            for place, holders in by_place.items():
                node = opened.graph.topology.nodes[place.node]
                if node.kind != "source":
                    raise InvalidQueryError(
                        f"with names rows of inputs, and operation {in_words(node)} is none"
                    )
                ways[place] = way_between(opened.snapshot, holders, starts, check)
        return cls(list(ways.items()), list(_starts(opened, ways.items())))

    @property
    def places(self) -> frozenset[Place]:
        return frozenset(place for place, _ in self.ways)

    def shown(self, records: ExplainedRecords) -> tuple[DemandedRow, ...]:
        rows = records.input_records([place for place, _ in self.ways])
        return tuple(
            DemandedRow(
                **{name: getattr(row, name) for name in row.__dataclass_fields__},
                in_trace=way.leads,
                exact=way.is_exact,
                way=tuple(_shown_way(records, way)),
                note=_note(way),
            )
            for row, (_, way) in zip(rows, self.ways, strict=True)
        )


def _starts(opened: Opened, ways: Iterable[tuple[Place, Way]]) -> Iterator[Position]:
    for place, way in ways:
        if way.leads:
            for run in opened.graph.holders_of(place.node, place.partition, "backward"):
                yield Position(*place, run.number)
            yield from way.joined


def _shown_way(records: ExplainedRecords, way: Way) -> Iterator[WayRecord]:
    families = records.opened.graph.families
    nodes = records.opened.graph.topology.nodes
    public = [at for at in way.records if nodes[at.node].is_public][:MOST_ON_WAY]
    for at, record in records.records(public):
        version = families.place_of.get(at.node)
        yield WayRecord(
            node_id=records.node_id(at.node),
            name=nodes[at.node].name,
            loop=None if version is None else families.families[version[0]].loop,
            turn=None if version is None else version[1],
            record=record,
        )


def _note(way: Way) -> str:
    if not way.leads:
        return _NOT_THERE if way.is_exact else _MAY_BE_LOST
    notes = [] if way.is_exact else [_PERHAPS]
    return " ".join([*notes, *([] if way.records else [_TOO_MANY])])

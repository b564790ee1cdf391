"""Why an operation has no record with a key: the last operations that have it, and where its records ended.

Of operations whose keys were captured. What became of their records is what `missing` says of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from lineage_service.errors import InvalidQueryError, TimeBudgetError
from lineage_service.lineage import (
    Absence,
    KeyedOperation,
    KeyHolder,
    MissingRow,
    OtherSide,
    Record,
)
from lineage_service.queries import AbsenceQuery
from lineage_service.tracing.columns.application import OpenedApplication
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.columns.store_cursor import StoreCursor
from lineage_service.tracing.columns.time_budget import time_budget
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.missing.endings import RowStart
from lineage_service.tracing.missing.operation_inputs import inputs_of
from lineage_service.tracing.model.elements import TopologyNode, in_words
from lineage_service.tracing.model.topology import operation_of
from lineage_service.tracing.query.missing_starts import start_at
from lineage_service.tracing.query.row_endings import RowEndings
from lineage_service.tracing.query.shown_records import Show
from lineage_service.tracing.tables.table_versions import TableVersions
from lineage_service.tracing.walk.local_engine import TraceWalk
from lineage_service.tracing.walk.result import Position, nodes_before
from lineage_service.tracing.walk.starts import node_named
from spark_agent import contract

__all__ = ["AbsentKeys"]

Opened = OpenedApplication[Snapshot]
_WITH_TWO_SIDES = ("join", "Join", "subtract", "subtractByKey", "intersection")
_SAME_KEY = "SELECT DISTINCT node, run, pos FROM records WHERE kind = 'key' AND text = ? AND node IN ({})"


class AbsentKeys:
    """Of one flow store."""

    def __init__(
        self,
        open_application: Callable[[str], Opened],
        locations: RecordLocations,
        versions: TableVersions,
        show: Show,
        *,
        time_budget_s: float,
    ) -> None:
        self._open, self._locations, self._show = open_application, locations, show
        self._versions = versions
        self._time_budget_s = time_budget_s

    def absence(self, application_id: str, query: AbsenceQuery) -> Absence:
        """Raises NotFoundError, InvalidQueryError, TimeBudgetError."""
        opened = self._open(application_id)
        node = node_named(opened.graph, query.node)
        cursor = opened.snapshot.cursor()
        try:
            with time_budget(cursor, self._time_budget_s) as check:
                endings = RowEndings(opened, self._locations, self._versions, self._show, check)
                search = _Search(opened, cursor, endings, self._show, query, node, check)
                return search.absence()
        except TimeBudgetError:
            raise TimeBudgetError(
                f"what became of the key was not found within {self._time_budget_s:g} s: give it more time "
                "(LINEAGE_TRACE_SECONDS, --trace-seconds)"
            ) from None


class _Search:
    def __init__(
        self,
        opened: Opened,
        cursor: StoreCursor,
        endings: RowEndings,
        show: Show,
        query: AbsenceQuery,
        node: TopologyNode,
        check: Check,
    ) -> None:
        self._opened, self._cursor, self._query, self._node = opened, cursor, query, node
        self._show, self._check = show, check
        self._topology = opened.graph.topology
        self._endings = endings
        self._before = nodes_before(self._topology, [node.number])
        self._held = self._places_with_key()

    def absence(self) -> Absence:
        """Raises InvalidQueryError."""
        node, application = self._node, self._opened.application
        if node.number in self._held:
            raise InvalidQueryError(
                f"operation {in_words(node)} has records with the key {self._query.key!r}: explain these"
            )
        holders = tuple(map(self._holder, self._last(self._held)))
        without = [number for number in sorted(self._keyed()) if number not in self._held]
        reasons = list(self._reasons(holders))
        return Absence(
            application_id=application.application_id,
            name=application.name,
            asked=self._operation(node),
            key=self._query.key,
            holders=holders,
            without=tuple(self._operation(self._topology.nodes[number]) for number in without),
            exact=bool(holders) and all(map(_is_exact, holders)),
            complete=application.complete,
            reasons=tuple(reasons),
        )

    # -- who has the key -----------------------------------------------------------------------------

    def _keyed(self) -> set[int]:
        """The nodes before with keys."""
        keyed = self._opened.graph.blocks.keyed & self._before
        return {number for number in keyed if self._topology.nodes[number].is_public} - {self._node.number}

    def _places_with_key(self) -> dict[int, list[tuple[int, int]]]:
        """Node -> (partition, offset) of its records with the key, in runs that count."""
        graph = self._opened.graph
        nodes = sorted(self._keyed() | ({self._node.number} & graph.blocks.keyed))
        if not nodes:
            return {}
        marks = ", ".join("?" * len(nodes))
        rows = self._cursor.execute(_SAME_KEY.format(marks), [self._query.key, *nodes]).fetchall()
        places: dict[int, set[tuple[int, int]]] = {}
        for number, run, offset in rows:
            if run in self._topology.runs and run in graph.live:
                places.setdefault(number, set()).add((self._topology.runs[run].partition, offset))
        return {number: sorted(of_node) for number, of_node in sorted(places.items())}

    def _last(self, nodes: Iterable[int]) -> list[int]:
        """Those of some nodes behind which there is no other one."""
        numbers = set(nodes)
        covered = {
            before for number in numbers for before in nodes_before(self._topology, [number]) - {number}
        }
        return sorted(numbers - covered)

    # -- what became of it ---------------------------------------------------------------------------

    def _holder(self, number: int) -> KeyHolder:
        node, places = self._topology.nodes[number], self._held[number]
        starts = [start_at(self._opened, node, *place) for place in places[: self._query.limit]]
        ended: list[MissingRow] = []
        for start in starts:
            rows, _ = self._endings.before(start, [self._node.number])
            ended += rows
        became, total = self._became(node, starts)
        operation = self._operation(node)
        return KeyHolder(
            node_id=operation.node_id,
            name=operation.name,
            call_site=operation.call_site,
            total=len(places),
            records=self._shown(node, [_position(start) for start in starts if start.runs]),
            ended=tuple(ended),
            other_sides=tuple(self._other_sides(number, ended)),
            became=became,
            became_total=total,
        )

    def _became(self, node: TopologyNode, starts: Sequence[RowStart]) -> tuple[tuple[Record, ...], int]:
        walk = TraceWalk(self._opened.snapshot, "forward", to=self._node.number)
        for start in starts:
            assert start.place is not None
            for run in start.runs:
                walk.start(node.number, run.number, np.array([start.place[1]], np.int64))
        walk.advance(self._check)
        if not walk.at(self._node.number):
            return (), 0
        by_partition = walk.by_partition(self._node.number)
        places = [
            (partition, offset)
            for partition, offsets in sorted(by_partition.items())
            for offset in offsets[: self._query.limit].tolist()
        ]
        listed = walk.positions(self._node.number, places[: self._query.limit])
        return self._shown(self._node, listed), sum(map(len, by_partition.values()))

    def _other_sides(self, number: int, ended: Sequence[MissingRow]) -> Iterator[OtherSide]:
        """Of operations with two inputs at which records of a node ended."""
        operations = {row.ended.node_id: row.ended.name for row in ended if row.ended is not None}
        for node_id, name in operations.items():
            if not name.endswith(_WITH_TWO_SIDES):
                continue
            inputs = inputs_of(self._topology, int(node_id.rpartition("#")[2]))
            is_mine = [number in nodes_before(self._topology, [one]) for one in inputs]
            if len(inputs) == 2 and sum(is_mine) == 1:
                other = inputs[is_mine.index(False)]
                operation = self._operation(self._topology.nodes[other])
                yield OtherSide(
                    node_id=operation.node_id,
                    name=operation.name,
                    call_site=operation.call_site,
                    has_key=other in self._held if other in self._opened.graph.blocks.keyed else None,
                )

    def _reasons(self, holders: Sequence[KeyHolder]) -> Iterator[str]:
        asked = self._operation(self._node).node_id
        ends = {row.ended and row.ended.node_id for holder in holders for row in holder.ended if row.exact}
        # A join without a match, or a subtraction, gives no record with the key whatever else it gives.
        if self._node.number not in self._opened.graph.blocks.keyed and ends != {asked}:
            yield (
                f"The keys of operation {in_words(self._node)} are not known, so it may have such a record."
            )
        if not holders:
            which = "that has the key" if self._keyed() else "whose keys are known"
            yield (
                f"There is no operation before it {which}. The key may have been made of another one, or may "
                "be in operations whose keys are not captured."
            )
        for holder in holders:
            where = f"{holder.name} ({holder.node_id.rpartition('#')[2]})"
            if holder.total > len(holder.records):
                yield f"Of {where}, {len(holder.records):,} of {holder.total:,} records were followed."
            if holder.became:
                yield f"Records of {where} with the key went into records with other keys."
            elif not holder.ended:
                yield f"What became of the records of {where} is not known."

    # -- as people see it ----------------------------------------------------------------------------

    def _operation(self, node: TopologyNode) -> KeyedOperation:
        operation = operation_of(self._topology, node.number) or node
        return KeyedOperation(
            node_id=contract.node_id(self._topology.application_id, operation.number),
            name=operation.name,
            call_site=operation.call_site,
        )

    def _shown(self, node: TopologyNode, positions: Sequence[Position]) -> tuple[Record, ...]:
        return self._show(self._opened, self._cursor, node, positions, values=True, check=self._check)


def _is_exact(holder: KeyHolder) -> bool:
    """Is it known of all records with the key where they ended?"""
    is_followed = holder.total == len(holder.records) and not holder.became
    return is_followed and bool(holder.ended) and all(row.exact for row in holder.ended)


def _position(start: RowStart) -> Position:
    assert start.place is not None
    return Position(start.node.number, *start.place, start.runs[0].number)

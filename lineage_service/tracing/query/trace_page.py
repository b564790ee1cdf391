"""What is listed of a trace: a page of each node, or of one in the order of a column; and remarks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from time import monotonic

from lineage_service.conditions.filters import Where
from lineage_service.lineage import Remark
from lineage_service.queries import TraceQuery
from lineage_service.tracing.columns.application import OpenedApplication
from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.columns.store_cursor import StoreCursor
from lineage_service.tracing.columns.time_budget import time_budget
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.files.record_search import RecordSearch
from lineage_service.tracing.model.elements import TaskRun, TopologyNode
from lineage_service.tracing.query.reached_rows import SAMPLE_SIZE, ReachedRows, spread_places
from lineage_service.tracing.query.remarks import LEAST_ROWS
from lineage_service.tracing.query.row_order import Place
from lineage_service.tracing.query.selected_rows import (
    check_selection,
    is_selective,
    page_behind,
    selected,
)
from lineage_service.tracing.query.value_search import search_of
from lineage_service.tracing.walk.cross_application import Selection
from lineage_service.tracing.walk.local_engine import TraceWalk
from lineage_service.tracing.walk.result import Reached, Walked
from lineage_service.tracing.walk.walk_cache import LocalTrace
from spark_agent import contract

__all__ = ["TracePage"]

Opened = OpenedApplication[Snapshot]


@dataclass(slots=True)
class _Requested:
    """Records that are searched."""

    opened: Opened
    cursor: StoreCursor
    node: TopologyNode
    runs: dict[int, TaskRun]


#: The part of a query's time that remarks may take.
_REMARK_SHARE = 0.2


class TracePage:
    """Of one query over a trace that was walked. `only` is a node id."""

    def __init__(
        self,
        locations: RecordLocations,
        trace: LocalTrace,
        query: TraceQuery,
        only: str | None,
        time_budget_s: float,
    ) -> None:
        """Raises InvalidQueryError."""
        check_selection(query, only)
        self._locations, self._trace, self._query, self._only = locations, trace, query, only
        self._time_budget_s = time_budget_s
        self._remarks_until = monotonic() + _REMARK_SHARE * time_budget_s

    @property
    def unknown_beyond(self) -> Mapping[tuple[str, int], str]:
        """(application, node) -> why it is not known what comes beyond its files."""
        return self._trace.unknown_beyond

    def page(self, after: Mapping[str, Place] | None, check: Check) -> list[tuple[Opened, Walked]]:
        """One page, application by application. Raises InvalidQueryError."""
        query, only = self._query, self._only
        if only is None or not is_selective(query):
            return self._trace.page(query.limit, after, check, only)
        last = None if after is None else after.get(only)
        if after is not None and last is None:
            return self._trace.page(query.limit, after, check, only)
        return [
            (opened, replace(walked, reached=tuple(self._chosen(opened, walked.reached, last, check))))
            for opened, walked in self._trace.page(1, None, check, only)
        ]

    def _chosen(
        self, opened: Opened, reached: Iterable[Reached], last: Place | None, check: Check
    ) -> Iterator[Reached]:
        """The page of the one node that is listed, and the totals of the others."""
        for node in reached:
            if not node.positions:
                yield node
                continue
            places = self.selection(opened, node.node, check).places
            chosen, has_more = page_behind(places, last, self._query.limit)
            positions = self._walk(opened).positions(node.node, chosen)
            yield replace(node, positions=positions, has_more=has_more)

    def selection(self, opened: Opened, number: int, check: Check) -> Selection:
        """The places of a node that fulfil the condition, in the order of the column."""
        query = self._query
        node_id = contract.node_id(opened.application.application_id, number)
        key = node_id, query.filter, query.sort, query.desc
        if key not in self._trace.selections:
            node, ended = opened.graph.topology.nodes[number], opened.application.ended
            arrived: Mapping[int, Integers] = self._walk(opened).by_partition(number)
            with ExitStack() as limits:
                selection = selected(
                    query,
                    arrived,
                    lambda arrived: ReachedRows(self._locations, node, arrived, ended),
                    lambda where: self._search(opened, node, where, limits),
                    check,
                )
            self._trace.selections.clear()  # one is kept: pages follow each other
            self._trace.selections[key] = selection
        return self._trace.selections[key]

    def _search(self, opened: Opened, node: TopologyNode, where: Where, limits: ExitStack) -> RecordSearch:
        """It may take as long as the query until `limits` end."""
        runs = {run.partition: run for run in opened.graph.holders(node.number)}
        requested = _Requested(opened, opened.snapshot.cursor(), node, runs)
        search = search_of(requested, self._locations, where)
        limits.enter_context(time_budget(search.database, self._time_budget_s))
        return search

    def matches(self, opened: Opened, node: TopologyNode, check: Check) -> Selection | None:
        """Those of the node whose records are filtered; None of others."""
        is_listed = self._only == contract.node_id(opened.application.application_id, node.number)
        return self.selection(opened, node.number, check) if self._query.filter and is_listed else None

    def remarks(
        self, opened: Opened, node: TopologyNode, check: Check
    ) -> tuple[tuple[Remark, ...] | None, int | None]:
        """(what stands out of all rows of a node, of how many it is known); None where it is not asked for.

        Remarks are on the ends of a trace, once: with its first page.
        """
        if not self._has_remarks(opened, node):
            return None, None
        arrived = self._walk(opened).by_partition(node.number)
        if not self._locations.has_files(node, arrived):
            return None, None
        if sum(map(len, arrived.values())) < LEAST_ROWS:
            return (), sum(map(len, arrived.values()))
        rows = ReachedRows(self._locations, node, arrived, opened.application.ended)
        return rows.remarks(check, self._remarks_until)

    def sample(self, opened: Opened, node: TopologyNode) -> tuple[str, ...] | None:
        """Ids of records at even distances among all of an end of the trace; None where no remarks are."""
        if not self._has_remarks(opened, node):
            return None
        places = spread_places(self._walk(opened).by_partition(node.number), SAMPLE_SIZE)
        return tuple(contract.record_id(node.kind, *place) for place in places)

    def _has_remarks(self, opened: Opened, node: TopologyNode) -> bool:
        query = self._query
        end = "source" if query.direction == "backward" else "sink"
        is_asked_for = query.remarks and query.cursor is None and node.kind == end
        node_id = contract.node_id(opened.application.application_id, node.number)
        return is_asked_for and self._only in (None, node_id)

    def _walk(self, opened: Opened) -> TraceWalk:
        walk = self._trace.segments[opened.application.application_id][1]
        assert isinstance(walk, TraceWalk)
        return walk

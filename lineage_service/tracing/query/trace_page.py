"""What is listed of a trace: a page of each node, or of one in the order of a column; and remarks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic

import duckdb
import numpy as np

from lineage_service.conditions.filters import Where
from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import Remark
from lineage_service.queries import TraceQuery
from lineage_service.tracing.columns.application import OpenedApplication
from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.columns.time_budget import time_budget
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.model.elements import TaskRun, TopologyNode
from lineage_service.tracing.query.reached_rows import SAMPLE_SIZE, ReachedRows, spread_places
from lineage_service.tracing.query.remarks import LEAST_ROWS
from lineage_service.tracing.query.row_order import Place
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
    cursor: duckdb.DuckDBPyConnection
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
        for name, value in (("sort", query.sort), ("filter", query.filter)):
            if value is not None and only is None:
                raise InvalidQueryError(f"{name} needs only: the operation whose rows are meant")
        if query.desc and query.sort is None:
            raise InvalidQueryError("desc needs sort: the column whose largest values are to come first")
        self._locations, self._trace, self._query, self._only = locations, trace, query, only
        self._time_budget_s = time_budget_s
        self._remarks_until = monotonic() + _REMARK_SHARE * time_budget_s

    def page(self, after: Mapping[str, Place] | None, check: Check) -> list[tuple[Opened, Walked]]:
        """One page, application by application. Raises InvalidQueryError."""
        query, only = self._query, self._only
        if only is None or (query.sort is None and query.filter is None):
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
            first = _behind(places, last)
            chosen = places[first : first + self._query.limit]
            positions = self._walk(opened).positions(node.node, chosen)
            yield replace(node, positions=positions, has_more=first + len(chosen) < len(places))

    def selection(self, opened: Opened, number: int, check: Check) -> Selection:
        """The places of a node that fulfil the condition, in the order of the column."""
        query = self._query
        node_id = contract.node_id(opened.application.application_id, number)
        key = node_id, query.filter, query.sort, query.desc
        if key not in self._trace.selections:
            node, warnings = opened.graph.topology.nodes[number], tuple[str, ...]()
            arrived: Mapping[int, Integers] = self._walk(opened).by_partition(number)
            if query.filter is not None:
                arrived, warnings = self._fulfilling(opened, node, arrived, Where(query.filter), check)
            rows = ReachedRows(self._locations, opened, node, arrived)
            ordered = (
                rows.places() if query.sort is None else rows.ordered(query.sort, check, desc=query.desc)
            )
            self._trace.selections.clear()  # one is kept: pages follow each other
            self._trace.selections[key] = Selection(ordered, warnings)
        return self._trace.selections[key]

    def _fulfilling(
        self, opened: Opened, node: TopologyNode, arrived: Mapping[int, Integers], where: Where, check: Check
    ) -> tuple[Mapping[int, Integers], tuple[str, ...]]:
        """(the offsets that fulfil a condition, by partition; what was not looked at)."""
        runs = {run.partition: run for run in opened.graph.holders(node.number)}
        requested = _Requested(opened, opened.snapshot.database.cursor(), node, runs)
        fulfilling: dict[int, Integers] = {}
        with (
            search_of(requested, self._locations, where) as search,
            time_budget(search.database, self._time_budget_s),
        ):
            for partition, offsets in sorted(arrived.items()):
                if not len(offsets):
                    continue
                first, last = int(offsets[0]), int(offsets[-1]) + 1
                places = search.matching(partition, first=first, last=last, check=check)
                matches = np.array([offset for offset, is_match in places if is_match], np.int64)
                fulfilling[partition] = np.intersect1d(offsets, matches)
        return fulfilling, tuple(search.warnings)

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
        return ReachedRows(self._locations, opened, node, arrived).remarks(check, self._remarks_until)

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


def _behind(places: Sequence[Place], last: Place | None) -> int:
    """Where to go on."""
    if last is None:
        return 0
    try:
        return places.index(last) + 1
    except ValueError:
        raise InvalidQueryError("the cursor names a record that is not listed") from None

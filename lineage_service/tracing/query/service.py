"""Answers every question of `Queries` from the flow store: finds the start, walks, shows.

A snapshot of an application is kept while nothing more of it is stored. Questions of several threads run side
by side, each on a cursor of its own.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic

import duckdb
import numpy as np

from lineage_service.errors import TimeBudgetError, UnknownApplicationError
from lineage_service.lineage import (
    Application,
    Edge,
    Graph,
    Node,
    Record,
    RecordPage,
    Trace,
    TracedNode,
    Values,
)
from lineage_service.queries import RecordQuery, TraceQuery
from lineage_service.store.errors import translated_read_errors
from lineage_service.store.location import KEEP_COPIES_S
from lineage_service.tracing.columns.application import (
    OpenedApplication,
    StoreReader,
    open_application,
    stored_files,
)
from lineage_service.tracing.columns.snapshot import CachedRows, Snapshot
from lineage_service.tracing.columns.time_budget import time_budget
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.model.edges import public_edges, record_count
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.model.summaries import Receipts, Summaries
from lineage_service.tracing.query.missing_values import how_to_see, value_steps
from lineage_service.tracing.query.records import RecordPages
from lineage_service.tracing.query.trace_results import (
    Texts,
    nodes_of,
    reason_of,
    records_of,
    state_of,
    trace_of,
)
from lineage_service.tracing.walk import cursors
from lineage_service.tracing.walk.cross_application import CrossApplicationTrace
from lineage_service.tracing.walk.cursors import Page
from lineage_service.tracing.walk.dataset_links import FilesOfApplications
from lineage_service.tracing.walk.local_engine import TraceWalk
from lineage_service.tracing.walk.result import Position, Walked
from lineage_service.tracing.walk.starts import (
    end_named,
    held_named,
    no_such_key,
    node_id_named,
    places_named,
    record_named,
)
from lineage_service.tracing.walk.walk_cache import LocalTrace, WalkCache
from spark_agent import contract

_CACHED_SNAPSHOTS = 8
#: The files of a kept one are asked for again so often: copies from an object store go when nobody does so.
_FILES_ASKED_S = KEEP_COPIES_S / 24

Opened = OpenedApplication[Snapshot]


class LineageQueries:
    """`Queries` over a flow store."""

    def __init__(self, store: StoreReader, *, time_budget_s: float) -> None:
        self._store = store
        self._time_budget_s = time_budget_s
        self._locations = RecordLocations()
        self._pages = RecordPages(self._locations, self._show, time_budget_s=time_budget_s)
        self._walks = WalkCache()
        self._files = FilesOfApplications(store)
        self._receipts = Receipts()
        self._summaries = Summaries(store, self._receipts)
        self._kept = CachedRows()
        self._lock = threading.Lock()
        self._opened: OrderedDict[str, _Input] = OrderedDict()

    # -- applications and graphs ---------------------------------------------------------------------

    def applications(self) -> tuple[Application, ...]:
        return self._summaries.all()

    def application(self, application_id: str) -> Application:
        return self._summaries.of(application_id)

    def graph(self, application_id: str) -> Graph:
        opened = self._open(application_id)
        public = [node for node in opened.graph.topology.nodes.values() if node.is_public]
        nodes = tuple(self._node(opened, node) for node in sorted(public, key=lambda node: node.number))
        edges = [
            Edge(
                source=contract.node_id(application_id, edge.source),
                target=contract.node_id(application_id, edge.target),
                flows=edge.flows,
                shuffle=edge.is_shuffle,
            )
            for edge in public_edges(opened.graph)
        ]
        return Graph(application_id=application_id, nodes=nodes, edges=tuple(edges))

    def _node(self, opened: Opened, node: TopologyNode) -> Node:
        application_id = opened.application.application_id
        return Node(
            node_id=contract.node_id(application_id, node.number),
            node=node.number,
            name=node.name,
            description=node.description,
            kind="source" if node.kind == "source" else "sink" if node.kind == "sink" else "operator",
            call_site=node.call_site,
            exact=opened.graph.is_exact(node.number),
            reason=reason_of(opened.graph, node),
            dataset=node.dataset,
            records=record_count(opened.graph, node.number),
            has_values=node.number in opened.graph.blocks.valued,
            state=state_of(node),
            error=None if node.outcome is None else node.outcome.error,
        )

    # -- records -------------------------------------------------------------------------------------

    def records(self, application_id: str, query: RecordQuery) -> RecordPage:
        return self._pages.page(self._open(application_id), query)

    # -- traces --------------------------------------------------------------------------------------

    def trace(self, application_id: str, query: TraceQuery) -> Trace:
        opened = self._open(application_id)
        question = cursors.digest(application_id, query)
        page = cursors.read(query.cursor, question)
        walk = cursors.digest(application_id, replace(query, only=None))  # whatever is listed of it
        to = end_named(opened.graph, query.to)
        only = node_id_named(opened.graph, query.only) if query.only else None
        trace: LocalTrace | None = None
        cursor = opened.snapshot.database.cursor()
        try:
            with time_budget(cursor, self._time_budget_s) as check:
                node, start = self._start(opened, cursor, query, check)
                trace = self._walks.take(walk)
                if trace is None:
                    trace = self._new_trace(opened, query, to, start)
                if not (page.so_far and trace.has_found):
                    trace.advance(check)
                mine = _distinct([position for position in start if position.node == node.number])[
                    : query.limit
                ]
                first = self._show(opened, cursor, node, mine, values=query.values, check=check)
                segments = trace.page(query.limit, page.after, check, only)
                shown = [self._segment(*segment, query, check) for segment in segments]
                return trace_of(query, node, first, trace, segments, shown)
        except TimeBudgetError as error:
            if trace is not None and trace.has_found:
                error.next = cursors.written(question, Page(so_far=True))
            raise
        finally:
            if trace is not None:
                self._walks.keep(walk, trace)

    def _new_trace(
        self, opened: Opened, query: TraceQuery, to: int | None, start: Sequence[Position]
    ) -> LocalTrace:
        walk = TraceWalk(opened.snapshot, query.direction, depth=query.depth, to=to)
        for position in start:
            walk.start(position.node, position.run, np.array([position.offset], np.int64))
        return CrossApplicationTrace(
            opened,
            walk,
            query.direction,
            open_application=self._open,
            new_walk=lambda snapshot: TraceWalk(snapshot, query.direction),
            files=self._files if query.crosses_applications else None,
            rows_before=self._locations.rows_before,
        )

    def _segment(
        self, opened: Opened, walked: Walked, query: TraceQuery, check: Check
    ) -> tuple[TracedNode, ...]:
        """What one application has on a page."""
        cursor = opened.snapshot.database.cursor()
        return nodes_of(
            opened.graph,
            walked,
            query.direction,
            lambda node, positions: self._show(
                opened, cursor, node, positions, values=query.values, check=check
            ),
        )

    def _start(
        self, opened: Opened, cursor: duckdb.DuckDBPyConnection, query: TraceQuery, check: Check
    ) -> tuple[TopologyNode, list[Position]]:
        """The node to name, and the records, in the runs that hold them, that a query names."""
        named = places_named(opened.graph, self._locations, query, check)
        if isinstance(named, TopologyNode):
            return named, self._by_key(opened, cursor, named, query)
        starts = held_named(opened.graph, named, query.direction)
        positions = [
            Position(node.number, partition, offset, run.number)
            for node, partition, offset, runs in starts
            for run in runs
        ]
        return starts[0][0], positions

    def _by_key(
        self, opened: Opened, cursor: duckdb.DuckDBPyConnection, node: TopologyNode, query: TraceQuery
    ) -> list[Position]:
        rows = cursor.execute(
            "SELECT DISTINCT run, pos FROM records WHERE node = ? AND kind = 'key' AND text = ?",
            [node.number, query.key],
        ).fetchall()
        partitions = {run.partition for number, _ in rows if (run := opened.graph.topology.runs.get(number))}
        allowed = {
            run.number: run
            for partition in partitions
            for run in opened.graph.holders_of(node.number, partition, query.direction)
        }
        positions = [
            Position(node.number, allowed[run].partition, pos, run) for run, pos in rows if run in allowed
        ]
        if not positions:
            raise no_such_key(node, query.key)
        return sorted(positions, key=_place)

    # -- values --------------------------------------------------------------------------------------

    def values(self, application_id: str, record: str, node: str | None) -> Values:
        opened = self._open(application_id)
        start_node, partition, offset = record_named(opened.graph, record, node)
        query = TraceQuery(
            direction="backward",
            node=str(start_node.number),
            partition=partition,
            offset=offset,
            limit=20,
            values=True,
        )
        backward = self.trace(application_id, query)
        forward = self.trace(application_id, replace(query, direction="forward"))
        way = (*reversed(backward.nodes), *forward.nodes[1:])
        return Values(
            node_id=contract.node_id(application_id, start_node.number),
            record_id=contract.record_id(start_node.kind, partition, offset),
            captured=bool(opened.graph.blocks.valued),
            how=how_to_see(opened, way),
            steps=tuple(value_steps(opened, way)),
        )

    # -- shared --------------------------------------------------------------------------------------

    def _show(
        self,
        opened: Opened,
        cursor: duckdb.DuckDBPyConnection,
        node: TopologyNode,
        positions: Sequence[Position],
        *,
        values: bool,
        check: Check,
    ) -> tuple[Record, ...]:
        texts: Texts = {}
        if node.number in opened.graph.blocks.keyed:
            texts = self._texts(opened, cursor, node, positions, values=values)
        return records_of(opened, node, positions, texts, self._locations, check)

    @staticmethod
    def _texts(
        opened: Opened,
        cursor: duckdb.DuckDBPyConnection,
        node: TopologyNode,
        positions: Sequence[Position],
        *,
        values: bool,
    ) -> Texts:
        offsets_of: dict[int, list[int]] = defaultdict(list)
        for position in positions:
            offsets_of[opened.graph.maker(node.number, position.run)].append(position.offset)
        kinds = ("key", "value") if values else ("key",)
        rows = opened.snapshot.texts.of(cursor, node.number, offsets_of, kinds)
        return {(node.number, run, pos, kind): (type_, text) for run, pos, kind, type_, text in rows}

    def _open(self, application_id: str) -> Opened:
        """The application as it is stored now. It is read again only if something of it was written."""
        version = self._store.version()
        with self._lock:
            cached = self._opened.get(application_id)
            asked_at = monotonic()
            if (
                cached is not None
                and cached.version == version
                and asked_at < cached.asked_at + _FILES_ASKED_S
            ):
                self._opened.move_to_end(application_id)
                return cached.opened
        files = stored_files(self._store, application_id)
        if cached is None or cached.files != files:
            events = self._store.events(application_id)
            if not events:
                raise UnknownApplicationError(application_id)
            with translated_read_errors():
                rows = self._store.rows(application_id)
                opened = open_application(files, application_id, events, self._kept, self._receipts, rows)
            cached = _Input(opened, files, version, asked_at)
        else:
            cached = replace(cached, version=version, asked_at=asked_at)
        with self._lock:
            self._opened[application_id] = cached
            self._opened.move_to_end(application_id)
            while len(self._opened) > _CACHED_SNAPSHOTS:
                self._opened.popitem(last=False)
        return cached.opened


@dataclass(frozen=True, slots=True)
class _Input:
    """An open application, the files that it was read from, and a version of the store that has these.

    They were asked for last at `asked_at`, by the monotonic clock.
    """

    opened: Opened
    files: Mapping[str, tuple[str, ...]]
    version: object
    asked_at: float


def _place(position: Position) -> tuple[int, int]:
    return position.partition, position.offset


def _distinct(positions: Sequence[Position]) -> list[Position]:
    return list({_place(position): position for position in positions}.values())

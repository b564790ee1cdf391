"""The trace of `Queries` as Spark SQL over the same Delta tables, for what outgrows one machine.

    from lineage_service.tracing.spark.api import trace

    result = trace(spark, "s3://lineage/flows", "app-20261122-0001", TraceQuery(direction="backward", ...))

The same query gives the same result. Needs PySpark, which nothing else of the service does, and executors
that can read the store. The files of jobs are read on the driver.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import Trace
from lineage_service.queries import TraceQuery
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.columns.application import OpenedApplication
from lineage_service.tracing.files.decompression import unlimited
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.query.reached_rows import MOST_ORDERED, ReachedRows
from lineage_service.tracing.query.remarks import remarks_on
from lineage_service.tracing.query.requested_columns import RequestedColumns
from lineage_service.tracing.query.selected_rows import (
    check_selection,
    is_selective,
    page_behind,
    selected,
)
from lineage_service.tracing.query.trace_results import (
    ShownRecords,
    Texts,
    nodes_of,
    records_of,
    start_of,
    trace_of,
)
from lineage_service.tracing.query.trace_starts import failures_of
from lineage_service.tracing.spark.engine import Arrived, SparkTraceWalk
from lineage_service.tracing.spark.frontiers import (
    BROADCAST_RECORDS,
    HELD_RECORDS,
    Frontier,
    SparkFrontiers,
)
from lineage_service.tracing.spark.pages import reached_at
from lineage_service.tracing.spark.store import SparkSnapshot, StoreInSpark, open_in_spark
from lineage_service.tracing.walk import cursors
from lineage_service.tracing.walk.cross_application import CrossApplicationTrace, Selection
from lineage_service.tracing.walk.dataset_links import FilesOfApplications
from lineage_service.tracing.walk.result import Position, Reached, Walked
from lineage_service.tracing.walk.starts import (
    end_named,
    no_such_key,
    node_id_named,
    records_named,
    starts_named,
)
from spark_agent import contract

__all__ = ["SparkTracing", "local_session", "trace"]

_CACHED_SNAPSHOTS = 8

Opened = OpenedApplication[SparkSnapshot]
Selections = dict[str, Selection]
"""Node id -> which of its records fulfil the condition."""


def trace(
    spark: SparkSession,
    store: StoreInSpark | str,
    application_id: str,
    query: TraceQuery,
    *,
    location: str | None = None,
    is_reliable: bool = False,
) -> Trace:
    """One trace. `store` is a flow store, or its folder or URL; see SparkTracing for the rest."""
    opened = DeltaFlowStore(store) if isinstance(store, str) else store
    return SparkTracing(spark, opened, location=location, is_reliable=is_reliable).trace(
        application_id, query
    )


class SparkTracing:
    """Traces over one flow store in one Spark session. An application is read once for each version."""

    def __init__(
        self,
        spark: SparkSession,
        store: StoreInSpark,
        *,
        location: str | None = None,
        is_reliable: bool = False,
        held_records: int = HELD_RECORDS,
        broadcast_records: int = BROADCAST_RECORDS,
    ) -> None:
        """`location` is the store's folder or URL as the executors know it, where that is another.

        `is_reliable` keeps the sets of a walk in the session's checkpoint folder, so that they outlive
        executors. A set of at most `held_records` is held by the driver; one of at most `broadcast_records`
        is sent to the flows, a larger one is shuffled.
        """
        self._spark = spark
        self._store = store
        self._location = location
        self._is_reliable = is_reliable
        self._held_records = held_records
        self._broadcast_records = broadcast_records
        self._locations = RecordLocations()
        self._files = FilesOfApplications(store)
        self._opened: OrderedDict[str, tuple[object, Opened]] = OrderedDict()  # with the store's version

    def trace(self, application_id: str, query: TraceQuery) -> Trace:
        """Raises NotFoundError, InvalidQueryError."""
        opened = self._open(application_id)
        page = cursors.decode(query.cursor, cursors.digest(application_id, query))
        to = end_named(opened.graph, query.to)
        only = node_id_named(opened.graph, query.only) if query.only else None
        check_selection(query, only)
        main = self._new_frontiers(opened.snapshot, has_origins=False)
        starts = self._starts(opened.snapshot, main, query)
        trace = self._new_trace(opened, query, to, starts)
        trace.advance(unlimited)
        named = [reached_at(main, node, start, query.limit) for node, start in starts.items()]
        selections: Selections = {}
        if only is None or not is_selective(query):
            segments = trace.page(query.limit, page.after, unlimited, only)
        else:
            last = None if page.after is None else page.after.get(only)
            segments = self._selected(trace, query, only, last, selections)
        texts = self._shown_texts(named, segments, query)
        nodes = opened.graph.topology.nodes
        columns = RequestedColumns(query.columns)
        result = trace_of(
            query,
            [
                start_of(
                    opened.application,
                    nodes[start.node],
                    start.total,
                    self._show(
                        opened, texts[application_id], query, columns, nodes[start.node], start.positions
                    ).records,
                )
                for start in named
            ],
            trace,
            segments,
            [
                nodes_of(
                    segment,
                    walked,
                    query.direction,
                    partial(
                        self._show,
                        segment,
                        texts[segment.application.application_id],
                        query,
                        columns,
                        selections=selections,
                    ),
                    trace.unknown_beyond,
                )
                for segment, walked in segments
            ],
        )
        columns.check()
        return result

    def _selected(
        self,
        trace: CrossApplicationTrace[SparkSnapshot, Arrived],
        query: TraceQuery,
        only: str,
        last: tuple[int, int] | None,
        selections: Selections,
    ) -> list[tuple[Opened, Walked]]:
        """The page of one node by the condition and the order; `selections` gets what was chosen there."""
        segments = []
        for opened, walked in trace.page(1, None, unlimited, only):
            reached = []
            for node in walked.reached:
                if contract.node_id(opened.application.application_id, node.node) == only:
                    walk = trace.segments[opened.application.application_id][1]
                    assert isinstance(walk, SparkTraceWalk)
                    node, selections[only] = self._selection(opened, walk, node, query, last)
                reached.append(node)
            segments.append((opened, replace(walked, reached=tuple(reached))))
        return segments

    def _selection(
        self,
        opened: Opened,
        walk: SparkTraceWalk,
        reached: Reached,
        query: TraceQuery,
        last: tuple[int, int] | None,
    ) -> tuple[Reached, Selection]:
        """Raises InvalidQueryError: places and rows come to the driver, so they are bounded."""
        node, ended = opened.graph.topology.nodes[reached.node], opened.application.ended
        if reached.total > MOST_ORDERED:
            raise InvalidQueryError(
                f"{reached.total:,} rows are not sorted or filtered, {MOST_ORDERED:,} at most: leave sort "
                "and filter out"
            )
        runs = walk.runs_of_places(node.number)
        if query.filter is not None and not self._locations.has_files(node, {place[0] for place in runs}):
            raise InvalidQueryError(
                f"node {node.number} ({node.name}) has no files, and --engine spark filters rows of files "
                "only: leave --engine spark out"
            )
        offsets: dict[int, list[int]] = {}
        for partition, offset in sorted(runs):
            offsets.setdefault(partition, []).append(offset)
        selection = selected(
            query,
            {partition: np.array(at, np.int64) for partition, at in offsets.items()},
            lambda arrived: ReachedRows(self._locations, node, arrived, ended),
            lambda where: self._locations.search(node, where, ended=ended),
            unlimited,
        )
        chosen, has_more = page_behind(selection.places, last, query.limit)
        positions = tuple(Position(node.number, *place, runs[place]) for place in chosen)
        return replace(reached, positions=positions, has_more=has_more), selection

    def _new_trace(
        self, opened: Opened, query: TraceQuery, to: int | None, starts: Mapping[int, Frontier]
    ) -> CrossApplicationTrace[SparkSnapshot, Arrived]:
        def new_walk(snapshot: SparkSnapshot, to: int | None = None) -> SparkTraceWalk:
            new_frontiers = partial(self._new_frontiers, snapshot)
            return SparkTraceWalk(new_frontiers, query.direction, depth=query.depth, to=to)

        walk = new_walk(opened.snapshot, to)
        for node, start in starts.items():
            walk.start(node, start)
        return CrossApplicationTrace(
            opened,
            walk,
            query.direction,
            open_application=self._open,
            new_walk=new_walk,
            files=self._files if query.crosses_applications else None,
            rows_before=self._locations.rows_before,
        )

    def _new_frontiers(self, snapshot: SparkSnapshot, has_origins: bool) -> SparkFrontiers:
        return SparkFrontiers(
            snapshot,
            has_origins=has_origins,
            is_reliable=self._is_reliable,
            held_records=self._held_records,
            broadcast_records=self._broadcast_records,
        )

    def _open(self, application_id: str) -> Opened:
        version = self._store.version()
        cached = self._opened.get(application_id)
        if cached is None or cached[0] != version:
            opened = open_in_spark(self._spark, self._store, application_id, self._location)
            cached = self._opened[application_id] = (version, opened)
        self._opened.move_to_end(application_id)
        while len(self._opened) > _CACHED_SNAPSHOTS:
            self._opened.popitem(last=False)
        return cached[1]

    def _starts(
        self, snapshot: SparkSnapshot, main: SparkFrontiers, query: TraceQuery
    ) -> dict[int, Frontier]:
        """The records, in the runs that hold them, by the nodes that a query names; the one to name first."""
        if failures_of(query):
            raise InvalidQueryError("a failure is traced on this machine: leave out the engine Spark")
        rows: dict[int, dict[tuple[int, int], None]] = {}
        for one in [replace(query, starts=None, **asdict(start)) for start in query.starts or ()] or [query]:
            named = records_named(snapshot.graph, self._locations, one, unlimited)
            if isinstance(named, TopologyNode):
                if query.starts:
                    raise InvalidQueryError("on Spark, a trace of several starts has none by a key")
                return {named.number: _by_key(snapshot, main, named, one)}
            for start in starts_named(snapshot.graph, named, one):
                at = ((run.number, start.offset) for run in start.runs)
                rows.setdefault(start.node.number, {}).update(dict.fromkeys(at))
        return {node: main.of_rows(of_node) for node, of_node in rows.items()}

    # -- what is shown -------------------------------------------------------------------------------

    def _shown_texts(
        self, starts: Sequence[Reached], segments: Sequence[tuple[Opened, Walked]], query: TraceQuery
    ) -> dict[str, Texts]:
        """What was captured of listed records, by application."""
        kinds = ("key", "value") if query.values else ("key",)
        texts: dict[str, Texts] = {}
        for segment, walked in segments:
            positions = [position for page in walked.reached for position in page.positions]
            if not texts:  # the application that the query names
                positions += (position for start in starts for position in start.positions)
            texts[segment.application.application_id] = _texts(segment.snapshot, positions, kinds)
        return texts

    def _show(
        self,
        opened: Opened,
        texts: Texts,
        query: TraceQuery,
        columns: RequestedColumns,
        node: TopologyNode,
        positions: Sequence[Position],
        *,
        selections: Selections | None = None,
    ) -> ShownRecords:
        """Remarks are on the listed rows: others were not read."""
        selection = (selections or {}).get(
            contract.node_id(opened.application.application_id, node.number) if query.filter else ""
        )
        request = columns.of(node)
        records = records_of(opened, node, positions, texts, self._locations, unlimited, request)
        schema = None if request is None else columns.shown(request, records)
        if not query.remarks or node.kind != ("source" if query.direction == "backward" else "sink"):
            return _with_matches(ShownRecords(records, schema), selection)
        rows = [(record.record_id, record.source) for record in records if record.source is not None]
        remarks = remarks_on(rows, request.types if request else {})
        return _with_matches(ShownRecords(records, schema, remarks, len(rows)), selection)


def _with_matches(shown: ShownRecords, selection: Selection | None) -> ShownRecords:
    """With how many rows fulfil the condition."""
    if selection is None:
        return shown
    return replace(shown, matches=len(selection.places), warnings=selection.warnings)


def _by_key(snapshot: SparkSnapshot, main: SparkFrontiers, node: TopologyNode, query: TraceQuery) -> Frontier:
    partitions = {snapshot.graph.topology.runs[run].partition for run in snapshot.graph.runs_of(node.number)}
    allowed = {
        run.number
        for partition in partitions
        for run in snapshot.graph.holders_of(node.number, partition, query.direction)
    }
    of_key = (F.col("node") == node.number) & (F.col("kind") == "key") & (F.col("text") == query.key)
    frontier = main.counted(
        snapshot.among(snapshot.records.where(of_key), "run", allowed).select("run", "pos").distinct()
    )
    if not frontier.spread:
        raise no_such_key(node, query.key)
    return frontier


def _texts(snapshot: SparkSnapshot, positions: Sequence[Position], kinds: Sequence[str]) -> Texts:
    """What was captured of these records."""
    places = {
        (position.node, snapshot.graph.maker(position.node, position.run), position.offset)
        for position in positions
        if position.node in snapshot.graph.blocks.keyed
    }
    if not places:
        return {}
    table = snapshot.table("node int, run bigint, pos bigint", sorted(places))
    columns = ["node", "run", "pos", "kind", "type", "text"]
    runs = snapshot.among(snapshot.records, "run", {run for _, run, _ in places})
    rows: DataFrame = (
        snapshot.among(runs, "node", {node for node, _, _ in places})
        .where(F.col("kind").isin(*kinds))
        .join(F.broadcast(table), ["node", "run", "pos"])
        .select(*columns)
    )
    return {
        (node, run, pos, kind): (type_, text)
        for node, run, pos, kind, type_, text in map(tuple, rows.collect())
    }


@contextmanager
def local_session(master: str, conf: Sequence[str] = ()) -> Iterator[SparkSession]:
    """A Spark session of its own, without lineage and with `NAME=VALUE` of `conf`.

    Raises InvalidQueryError for a setting that has no value.
    """
    settings = {
        "spark.lineage.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "8",
    }
    if master.startswith("local") and not master.startswith("local-cluster"):
        # Whatever this machine's name means, its address may not be one that it reaches itself by.
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    for text in conf:
        name, separator, value = text.partition("=")
        if not separator:
            raise InvalidQueryError(f"--conf {text!r} is not NAME=VALUE")
        settings[name.strip()] = value.strip()
    builder = SparkSession.builder.master(master).appName("lineage trace")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        spark.sparkContext.setLogLevel("ERROR")
        yield spark
    finally:
        spark.stop()

"""Answers every question of `Questions` from the flow store: finds the start, walks, shows.

A snapshot of an application is kept while nothing more of it is stored. Questions of several threads run side
by side, each on a cursor of its own.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import duckdb
import numpy as np

from lineage_service.answers import (
    Application,
    Edge,
    Flow,
    Graph,
    InvalidQueryError,
    Node,
    NotFoundError,
    Record,
    RecordPage,
    RecordQuery,
    TimeBudgetError,
    Trace,
    TracedNode,
    TraceQuery,
    Values,
)
from lineage_service.tracing import cursors
from lineage_service.tracing.cursors import Page
from lineage_service.tracing.decompressed import Check
from lineage_service.tracing.engine import Position, TraceWalk, Walked, time_budget
from lineage_service.tracing.flow_files import ColumnCache
from lineage_service.tracing.ghost_links import FilesOfApplications
from lineage_service.tracing.journey import Journey
from lineage_service.tracing.kept_walks import KeptWalks
from lineage_service.tracing.missing_values import how_to_see, value_steps
from lineage_service.tracing.opened import OpenedApplication, StoreReader, open_application, stored_files
from lineage_service.tracing.places import Places
from lineage_service.tracing.records import RecordPages
from lineage_service.tracing.topology import Topology, TopologyNode
from spark_agent import contract

_KEPT_SNAPSHOTS = 8
_NO_TEXT = (None, None)


class LineageQuestions:
    """`Questions` over a flow store."""

    def __init__(self, store: StoreReader, *, time_budget_s: float) -> None:
        self._store = store
        self._time_budget_s = time_budget_s
        self._places = Places()
        self._pages = RecordPages(self._places, self._show, time_budget_s=time_budget_s)
        self._walks = KeptWalks()
        self._files = FilesOfApplications(store)
        self._columns = ColumnCache()
        self._lock = threading.Lock()
        self._opened: OrderedDict[str, _Held] = OrderedDict()

    # -- applications and graphs ---------------------------------------------------------------------

    def applications(self) -> tuple[Application, ...]:
        found = [self._open(application_id).application for application_id in self._store.applications()]
        return tuple(sorted(found, key=lambda each: (-each.started, each.application_id)))

    def application(self, application_id: str) -> Application:
        return self._open(application_id).application

    def graph(self, application_id: str) -> Graph:
        opened = self._open(application_id)
        topology = opened.snapshot.topology
        public = [node for node in topology.nodes.values() if node.is_public]
        nodes = tuple(self._node(opened, node) for node in sorted(public, key=lambda each: each.number))
        edges = [
            Edge(
                source=contract.node_id(application_id, source),
                target=contract.node_id(application_id, target),
                flows=opened.flows(first),
            )
            for source, first, target in _public_edges(opened.snapshot.topology)
        ]
        return Graph(application_id=application_id, nodes=nodes, edges=tuple(edges))

    def _node(self, opened: OpenedApplication, node: TopologyNode) -> Node:
        application_id = opened.application.application_id
        return Node(
            node_id=contract.node_id(application_id, node.number),
            node=node.number,
            name=node.name,
            description=node.description,
            kind="source" if node.kind == "source" else "sink" if node.kind == "sink" else "operator",
            call_site=node.call_site,
            exact=opened.snapshot.is_exact(node.number),
            reason="" if opened.snapshot.is_exact(node.number) else node.reason,
            dataset=node.dataset,
            records=sum(
                opened.snapshot.count(node.number, run.number) for run in opened.holders(node.number)
            ),
            has_values=node.number in opened.snapshot.valued,
        )

    # -- records -------------------------------------------------------------------------------------

    def records(self, application_id: str, query: RecordQuery) -> RecordPage:
        return self._pages.page(self._open(application_id), query)

    # -- traces --------------------------------------------------------------------------------------

    def trace(self, application_id: str, query: TraceQuery) -> Trace:
        opened = self._open(application_id)
        question = cursors.digest(application_id, query)
        page = cursors.read(query.cursor, question)
        to = opened.node(query.to).number if query.to else None
        journey: Journey | None = None
        cursor = opened.snapshot.database.cursor()
        try:
            with time_budget(cursor, self._time_budget_s) as check:
                node, start = self._start(opened, cursor, query, check)
                journey = self._walks.take(question)
                if journey is None:
                    journey = self._journey(opened, query, to)
                    for each in start:
                        journey.start(node.number, each.run, np.array([each.offset], np.int64))
                if not (page.so_far and journey.has_found):
                    journey.advance(check)
                first = self._show(
                    opened, cursor, node, _distinct(start)[: query.limit], values=query.values, check=check
                )
                legs = journey.page(query.limit, page.after, check)
                shown = [self._leg(*leg, query, check) for leg in legs]
                return _trace(opened, query, node, first, journey, legs, shown)
        except TimeBudgetError as error:
            if journey is not None and journey.has_found:
                error.next = cursors.written(question, Page(so_far=True))
            raise
        finally:
            if journey is not None:
                self._walks.keep(question, journey)

    def _journey(self, opened: OpenedApplication, query: TraceQuery, to: int | None) -> Journey:
        goes_on = query.across and query.to is None and query.depth is None
        return Journey(
            opened,
            TraceWalk(opened.snapshot, query.direction, depth=query.depth, to=to),
            query.direction,
            open_application=self._open,
            files=self._files if goes_on else None,
            rows_before=self._places.rows_before,
        )

    def _leg(
        self, opened: OpenedApplication, walked: Walked, query: TraceQuery, check: Check
    ) -> tuple[TracedNode, ...]:
        """What one application has on a page."""
        topology, cursor = opened.snapshot.topology, opened.snapshot.database.cursor()
        return tuple(
            TracedNode(
                node_id=contract.node_id(topology.application_id, each.node),
                name=topology.nodes[each.node].name,
                kind=topology.nodes[each.node].kind,
                exact=opened.snapshot.is_exact(each.node),
                total=each.total,
                records=self._show(
                    opened,
                    cursor,
                    topology.nodes[each.node],
                    each.positions,
                    values=query.values,
                    check=check,
                ),
            )
            for each in walked.reached
        )

    def _start(
        self,
        opened: OpenedApplication,
        cursor: duckdb.DuckDBPyConnection,
        query: TraceQuery,
        check: Check,
    ) -> tuple[TopologyNode, list[Position]]:
        """The node and the records, in the runs that hold them, that a query names."""
        if query.path is not None:
            number, split, offset = self._places.find(
                opened.snapshot.topology, query.path, query.row or 0, check
            )
            node = opened.snapshot.topology.nodes[number]
        elif query.key is not None and query.node is not None:
            node = opened.node(query.node)
            return node, self._by_key(opened, cursor, node, query)
        elif query.record is not None:
            node, split, offset = opened.parse_record(query.record, query.node)
        elif query.node is not None and query.partition is not None and query.offset is not None:
            node, split, offset = opened.node(query.node), query.partition, query.offset
        else:
            raise InvalidQueryError(
                "say where the trace begins: record, or node with partition and offset, or node with key, "
                "or path with row"
            )
        runs = opened.holders_of(node.number, split, query.direction)
        held = [run for run in runs if offset < opened.snapshot.count(node.number, run.number)]
        if not held:
            known = max((opened.snapshot.count(node.number, run.number) for run in runs), default=0)
            raise NotFoundError(
                f"node {node.number} ({node.name}) has {known} records in partition {split}; "
                f"offset {offset} is not there (offsets count from 0)"
            )
        return node, [Position(node.number, split, offset, run.number) for run in held]

    def _by_key(
        self,
        opened: OpenedApplication,
        cursor: duckdb.DuckDBPyConnection,
        node: TopologyNode,
        query: TraceQuery,
    ) -> list[Position]:
        rows = cursor.execute(
            "SELECT DISTINCT run, pos FROM records WHERE node = ? AND kind = 'key' AND text = ?",
            [node.number, query.key],
        ).fetchall()
        splits = {run.split for number, _ in rows if (run := opened.snapshot.topology.runs.get(number))}
        allowed = {
            run.number: run
            for split in splits
            for run in opened.holders_of(node.number, split, query.direction)
        }
        found = [Position(node.number, allowed[run].split, pos, run) for run, pos in rows if run in allowed]
        if not found:
            raise NotFoundError(f"node {node.number} ({node.name}) has no record with the key {query.key!r}")
        return sorted(found, key=_place)

    # -- values --------------------------------------------------------------------------------------

    def values(self, application_id: str, record: str, node: str | None) -> Values:
        opened = self._open(application_id)
        start_node, split, offset = opened.parse_record(record, node)
        query = TraceQuery(
            direction="backward",
            node=str(start_node.number),
            partition=split,
            offset=offset,
            limit=20,
            values=True,
        )
        backward = self.trace(application_id, query)
        forward = self.trace(application_id, replace(query, direction="forward"))
        way = (*reversed(backward.nodes), *forward.nodes[1:])
        return Values(
            node_id=contract.node_id(application_id, start_node.number),
            record_id=_record_id(start_node, split, offset),
            captured=bool(opened.snapshot.valued),
            how=how_to_see(opened, way),
            steps=tuple(value_steps(opened, way)),
        )

    # -- shared --------------------------------------------------------------------------------------

    def _show(
        self,
        opened: OpenedApplication,
        cursor: duckdb.DuckDBPyConnection,
        node: TopologyNode,
        positions: Sequence[Position],
        *,
        values: bool,
        check: Check,
    ) -> tuple[Record, ...]:
        texts: dict[tuple[int, int, str], tuple[str, str]] = {}
        if node.number in opened.snapshot.keyed:
            texts = self._texts(cursor, node, positions, values=values)
        rows = self._places.rows_of(node, map(_place, positions), check, ended=opened.application.ended)
        return tuple(
            Record(
                record_id=_record_id(node, each.split, each.offset),
                partition=each.split,
                offset=each.offset,
                key=texts.get((each.run, each.offset, "key"), _NO_TEXT)[1],
                value=texts.get((each.run, each.offset, "value"), _NO_TEXT)[1],
                value_type=texts.get((each.run, each.offset, "value"), _NO_TEXT)[0],
                source=rows.get(_place(each)),
            )
            for each in positions
        )

    @staticmethod
    def _texts(
        cursor: duckdb.DuckDBPyConnection, node: TopologyNode, positions: Sequence[Position], *, values: bool
    ) -> dict[tuple[int, int, str], tuple[str, str]]:
        """(run, position, kind) -> (type, text)."""
        if not positions:
            return {}
        rows = cursor.execute(
            "SELECT records.run, records.pos, kind, type, text FROM records SEMI JOIN "
            "(SELECT unnest($runs) AS run, unnest($offsets) AS pos) AS shown "
            "ON records.run = shown.run AND records.pos = shown.pos "
            "WHERE records.node = $node AND kind IN ('key', $other)",
            {
                "runs": [each.run for each in positions],
                "offsets": [each.offset for each in positions],
                "node": node.number,
                "other": "value" if values else "key",
            },
        ).fetchall()
        return {(run, pos, kind): (type_, text) for run, pos, kind, type_, text in rows}

    def _open(self, application_id: str) -> OpenedApplication:
        """The application as it is stored now. It is read again only if something of it was written."""
        version = self._store.version()
        with self._lock:
            held = self._opened.get(application_id)
            if held is not None and held.version == version:
                self._opened.move_to_end(application_id)
                return held.opened
        files = stored_files(self._store, application_id)
        if held is None or held.files != files:
            events = self._store.events(application_id)
            if not events:
                raise NotFoundError(f"no application {application_id} is known")
            opened = open_application(files, application_id, events, self._columns)
            held = _Held(opened, files, version)
        else:
            held = replace(held, version=version)
        with self._lock:
            self._opened[application_id] = held
            self._opened.move_to_end(application_id)
            while len(self._opened) > _KEPT_SNAPSHOTS:
                self._opened.popitem(last=False)
        return held.opened


@dataclass(frozen=True, slots=True)
class _Held:
    """An open application, the files that it was read from, and a version of the store that has these."""

    opened: OpenedApplication
    files: Mapping[str, tuple[str, ...]]
    version: object


def _trace(
    opened: OpenedApplication,
    query: TraceQuery,
    node: TopologyNode,
    start: tuple[Record, ...],
    journey: Journey,
    legs: Sequence[tuple[OpenedApplication, Walked]],
    shown: Sequence[tuple[TracedNode, ...]],
) -> Trace:
    application_id = opened.application.application_id
    left = {
        contract.node_id(leg.application.application_id, number): place
        for leg, walked in legs
        for number, place in walked.left.items()
    }
    following = None
    if left or not journey.is_whole:
        page = Page(after=left if journey.is_whole else None)
        following = cursors.written(cursors.digest(application_id, query), page)
    return Trace(
        direction=query.direction,
        start=start,
        start_node=contract.node_id(application_id, node.number),
        complete=all(leg.application.complete for leg, _ in legs),
        exact=journey.is_exact and all(_is_exact(leg, walked) for leg, walked in legs),
        truncated=not journey.is_whole
        or any(each.total > len(each.positions) for _, walked in legs for each in walked.reached),
        nodes=tuple(each for nodes in shown for each in nodes),
        flows=(*(flow for leg in legs for flow in _flows(*leg)), *_ghost_flows(journey, legs)),
        next=following,
        how=how_to_see(opened, shown[0]) if query.values else "",
    )


def _flows(opened: OpenedApplication, walked: Walked) -> Iterator[Flow]:
    topology = opened.snapshot.topology
    for source, target in walked.flows:
        yield Flow(
            hash_in=_flow_end(topology.application_id, topology.nodes[source.node], source),
            hash_out=_flow_end(topology.application_id, topology.nodes[target.node], target),
            node_id=contract.node_id(topology.application_id, target.node),
        )


def _ghost_flows(journey: Journey, legs: Sequence[tuple[OpenedApplication, Walked]]) -> Iterator[Flow]:
    """From a row that one application wrote to the same row that another read, where both are listed."""
    listed = {
        (opened.application.application_id, each.node, position.split, position.offset): (
            opened.snapshot.topology.nodes[each.node],
            position,
        )
        for opened, walked in legs
        for each in walked.reached
        for position in each.positions
    }
    for (written, read), before in journey.passed.items():
        for (application_id, number, split, offset), (node, position) in listed.items():
            if (application_id, number, split) != (read.application_id, read.node, read.split):
                continue
            key = (written.application_id, written.node, written.split, offset + before)
            if key in listed:
                writer, row = listed[key]
                yield Flow(
                    hash_in=_flow_end(written.application_id, writer, row),
                    hash_out=_flow_end(application_id, node, position),
                    node_id=contract.node_id(application_id, number),
                )


def _is_exact(opened: OpenedApplication, walked: Walked) -> bool:
    nodes = opened.snapshot.topology.nodes
    return walked.is_exact and all(_is_known(nodes[each.node]) for each in walked.reached)


def _public_edges(topology: Topology) -> list[tuple[int, int, int]]:
    """(public node, the node that reads it, the public node that this belongs to), through the steps."""
    edges: dict[tuple[int, int], int] = {}
    for target in topology.nodes.values():
        if not target.is_public:
            continue
        stack, seen = [(parent, target.number) for parent in target.parents], set()
        while stack:
            number, reader = stack.pop()
            if number not in topology.nodes or (number, reader) in seen:
                continue
            seen.add((number, reader))
            if topology.nodes[number].is_public:
                edges.setdefault((number, target.number), reader)
            else:
                stack.extend((parent, number) for parent in topology.nodes[number].parents)
    return [(source, reader, target) for (source, target), reader in sorted(edges.items())]


def _is_known(node: TopologyNode) -> bool:
    """May an answer that passes here be exact? The walk says itself where it took a partition as a bound."""
    return node.exact or node.relation == contract.PARTITION


def _record_id(node: TopologyNode, split: int, offset: int) -> str:
    return contract.record_id(node.kind, split, offset)


def _flow_end(application_id: str, node: TopologyNode, position: Position) -> str:
    return (
        f"{contract.node_id(application_id, node.number)}#{_record_id(node, position.split, position.offset)}"
    )


def _place(position: Position) -> tuple[int, int]:
    return position.split, position.offset


def _distinct(positions: Sequence[Position]) -> list[Position]:
    return list({_place(each): each for each in positions}.values())

"""Row sets of records that a query names: walks back to the end, and names the rows.

By a trace, or by an explanation where only the rows are asked for that decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lineage_service.errors import InvalidQueryError, TimeBudgetError
from lineage_service.lineage import RowSet
from lineage_service.queries import RowSetQuery, StartQuery, TraceQuery
from lineage_service.tracing.columns.time_budget import time_budget
from lineage_service.tracing.explain import explainer
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.query.failures import FailureReader
from lineage_service.tracing.query.local_traces import LocalTraces
from lineage_service.tracing.query.open_applications import Opened
from lineage_service.tracing.query.row_sets import Doubts, Reached, RowSets
from lineage_service.tracing.query.shown_records import Show
from lineage_service.tracing.query.trace_results import is_exact
from lineage_service.tracing.query.trace_starts import TraceStarts, failures_of
from lineage_service.tracing.walk import cursors
from lineage_service.tracing.walk.local_engine import TraceWalk
from lineage_service.tracing.walk.result import Position
from lineage_service.tracing.walk.walk_cache import LocalTrace, WalkCache

__all__ = ["RowSetReader", "doubts_of"]


class RowSetReader:
    """Of one flow store."""

    def __init__(
        self,
        starts: TraceStarts,
        traces: LocalTraces,
        failures: FailureReader,
        walks: WalkCache,
        locations: RecordLocations,
        show: Show,
        *,
        time_budget_s: float,
    ) -> None:
        self._starts, self._traces, self._failures = starts, traces, failures
        self._locations, self._time_budget_s = locations, time_budget_s
        self._walks = walks
        self.sets = RowSets(locations, show)

    def row_set(self, application_id: str, query: RowSetQuery) -> RowSet:
        """Raises NotFoundError, InvalidQueryError, TimeBudgetError: then the next one goes on."""
        if not query.starts:
            raise InvalidQueryError("say which records: the rows of no record are none")
        asked = TraceQuery(direction="backward", starts=query.starts, across=False)
        opened, begin = self._starts.opened(application_id, asked)
        doubts = doubts_of(self._failures, opened, asked)
        if query.concise:
            return self._concise(opened, asked, begin, doubts, query.limit)
        cursor = opened.snapshot.cursor()
        name = "rows", cursors.digest(opened.application.application_id, asked), *begin
        trace = self._walks.take(name)
        try:
            with time_budget(cursor, self._time_budget_s) as check:
                asked = self._of_every_reader(opened, asked, check)
                starts = [*begin, *self._starts.named(opened, cursor, asked, check)]
                if trace is None:
                    trace = self._traces.new(opened, asked, None, starts)
                trace.advance(check)
                reached = _reached(opened, trace, check)
                return self.sets.of(opened, reached, starts, doubts, query.limit, check)
        except TimeBudgetError:
            raise TimeBudgetError(
                f"the rows were not all traced within {self._time_budget_s:g} s: ask again, and the trace "
                "goes on where it stopped"
            ) from None
        finally:
            if trace is not None:
                self._walks.put(name, trace)

    def _concise(
        self, opened: Opened, asked: TraceQuery, begin: Sequence[Position], doubts: Doubts, limit: int
    ) -> RowSet:
        """Of what decided. Raises as `row_set`."""
        cursor = opened.snapshot.cursor()
        try:
            with time_budget(cursor, self._time_budget_s) as check:
                asked = self._of_every_reader(opened, asked, check)
                starts = [*begin, *self._starts.named(opened, cursor, asked, check)]
                explained = explainer.explain(opened.snapshot, starts, check)
                reached = Reached(
                    lambda node: explained.rows.get(node, {}), explained.exact, explained.reasons
                )
                return self.sets.of(opened, reached, starts, doubts, limit, check)
        except TimeBudgetError:
            raise TimeBudgetError(
                f"the explanation was not found within {self._time_budget_s:g} s: ask for fewer records at "
                "once, or give it more time (LINEAGE_TRACE_SECONDS, --trace-seconds)"
            ) from None

    def _of_every_reader(self, opened: Opened, query: TraceQuery, check: Check) -> TraceQuery:
        """A row of a file that was only read is a record of each source that read it, and all are meant."""
        starts: list[StartQuery] = []
        for start in query.starts or ():
            is_row = start.path is not None and start.row is not None and start.node is None
            starts += self._readers(opened, start, check) if is_row else [start]
        return replace(query, starts=tuple(starts))

    def _readers(self, opened: Opened, start: StartQuery, check: Check) -> list[StartQuery]:
        topology = opened.graph.topology
        assert start.path is not None
        assert start.row is not None
        records = self._locations.find(topology, start.path, start.row, check, direction="forward")
        if any(topology.nodes[node].kind != "source" for node, _, _ in records):
            return [start]  # backward it is the row that was written
        return [StartQuery(node=str(node), partition=split, offset=at) for node, split, at in records]


def _reached(opened: Opened, trace: LocalTrace, check: Check) -> Reached:
    """By a trace that was walked to its end."""
    walk = trace.segments[opened.application.application_id][1]
    assert isinstance(walk, TraceWalk)
    return Reached(walk.by_partition, is_exact(opened, trace.page(0, None, check)[0][1]))


def doubts_of(failures: FailureReader, opened: Opened, query: TraceQuery) -> Doubts:
    """What is not known of the failures that a query begins at."""
    doubts = Doubts()
    for number in failures_of(query):
        reason, is_known = failures.doubt(opened, number)
        doubts.reasons += [f"of failure {number}, {reason}"] if reason else []
        doubts.are_unknown |= not is_known
    return doubts

"""The records of an application that took long, by what its task runs have reported.

Only runs that count have a part in it. Promises that input rows which are only a bound say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple, TypeVar

from lineage_service.errors import TimeBudgetError
from lineage_service.lineage import (
    Slow,
    SlowInput,
    SlowOperation,
    SlowPartition,
    SlowRecord,
    SlowRecordId,
    SourceRow,
    Trace,
)
from lineage_service.queries import SlowQuery, TraceQuery
from lineage_service.tracing.model.elements import TaskRun, TopologyNode
from lineage_service.tracing.model.topology import Topology, operation_of
from lineage_service.tracing.query.failure_sources import TraceAt
from lineage_service.tracing.query.open_applications import Opened
from lineage_service.tracing.walk.result import Position
from spark_agent import contract

__all__ = ["SlowRecordReader"]

#: Input rows that are listed of a record, and records whose rows are looked for.
_MOST_ROWS, _MOST_TRACED = 10, 200

_NO_TIME = "there was no time left to find its input rows: ask for fewer, or again"
_NOT_STORED = "an operation before is not stored, so its input rows are not known"
_UPPER_BOUND = "its lineage is an upper bound"
_NO_INPUTS = "no input row is stored of it"
_OPEN = "The lineage of the application is not complete: records may be missing."
_NOTHING = (
    "No function of an RDD was at one record for long enough to be noticed. Records are timed if the job ran "
    "with spark.lineage.pace=true; those of DataFrames are not."
)

Key = TypeVar("Key")


class _Booked(NamedTuple):
    """What a task run has reported of one record."""

    ms: int
    node: int
    position: int
    run: TaskRun


@dataclass(frozen=True, slots=True)
class _Sum:
    ms: int = 0
    records: int = 0

    def with_time(self, ms: int) -> _Sum:
        return _Sum(self.ms + ms, self.records + 1)


class SlowRecordReader:
    """Reads them from open applications. Threads may share it."""

    def __init__(self, trace_at: TraceAt, *, time_budget_s: float) -> None:
        self._trace_at, self._time_budget_s = trace_at, time_budget_s

    def slow(self, opened: Opened, query: SlowQuery) -> Slow:
        topology, application = opened.graph.topology, opened.application
        booked = sorted(_booked(topology), key=lambda one: (-one.ms, one.run.number, one.node, one.position))
        deadline = monotonic() + self._time_budget_s
        traced = [self._record(opened, one, deadline) for one in booked[: max(query.limit, _MOST_TRACED)]]
        how = [] if booked else [_NOTHING]
        how += [] if application.complete else [_OPEN]
        return Slow(
            application_id=application.application_id,
            name=application.name,
            records=tuple(traced[: query.limit]),
            total=len(booked),
            inputs=tuple(_inputs(traced))[: query.limit],
            operations=tuple(_operations(topology, booked))[: query.limit],
            partitions=tuple(_partitions(topology, booked))[: query.limit],
            complete=application.complete,
            how=" ".join(how),
        )

    def _record(self, opened: Opened, booked: _Booked, deadline: float) -> SlowRecord:
        topology = opened.graph.topology
        operation = operation_of(topology, booked.node)
        sources = self._sources(opened, booked, deadline)
        return SlowRecord(
            ms=booked.ms,
            node_id=_node_id(topology, booked.node if operation is None else operation.number),
            name="" if operation is None else operation.name,
            call_site="" if operation is None else operation.call_site,
            partition=booked.run.partition,
            record=sources.record,
            sources=sources.rows,
            sources_total=sources.total,
            exact=not sources.reason,
            reason=sources.reason,
        )

    def _sources(self, opened: Opened, booked: _Booked, deadline: float) -> _Sources:
        topology, run = opened.graph.topology, booked.run
        before = run.node_before(booked.node)
        nodes = (run.input, *run.nodes)
        if any(number not in topology.nodes for number in nodes[: nodes.index(before) + 1]):
            return _Sources(reason=_NOT_STORED)
        node = topology.nodes[before]
        start = Position(before, run.partition, booked.position, run.number)
        if monotonic() >= deadline:
            return _Sources(_record_id(topology, node, start, None), reason=_NO_TIME)
        query = TraceQuery(direction="backward", across=False, limit=_MOST_ROWS, values=True)
        try:
            trace = self._trace_at(opened, start, query)
        except TimeBudgetError:
            return _Sources(_record_id(topology, node, start, None), reason=_NO_TIME)
        return _sources_in(trace, _record_id(topology, node, start, trace))


@dataclass(frozen=True, slots=True)
class _Sources:
    """A record, and the input rows that it was made of."""

    record: SlowRecordId | None = None
    rows: tuple[SourceRow, ...] = ()
    total: int = 0
    reason: str = ""


def _sources_in(trace: Trace, record: SlowRecordId) -> _Sources:
    sources = [node for node in trace.nodes if node.kind == "source"]
    rows = [one.source for node in sources for one in node.records if one.source is not None]
    total = sum(node.total for node in sources)
    reason = "" if trace.exact and trace.complete else _UPPER_BOUND
    return _Sources(record, tuple(rows[:_MOST_ROWS]), total, reason if total else _NO_INPUTS)


def _record_id(topology: Topology, node: TopologyNode, start: Position, trace: Trace | None) -> SlowRecordId:
    shown = None if trace is None else next(iter(trace.start), None)
    return SlowRecordId(
        record_id=contract.record_id(node.kind, start.partition, start.offset),
        node_id=_node_id(topology, node.number),
        key=None if shown is None else shown.key,
        value=None if shown is None else shown.value,
    )


def _node_id(topology: Topology, number: int) -> str:
    return contract.node_id(topology.application_id, number)


def _booked(topology: Topology) -> Iterator[_Booked]:
    for number, run in topology.runs.items():
        if number not in topology.failed:
            for node, position, ms in run.slow:
                yield _Booked(ms, node, position, run)


# -- sums -----------------------------------------------------------------------------------------------


def _inputs(records: Iterable[SlowRecord]) -> Iterator[SlowInput]:
    """Of records that were made of few rows: of many, none of them is to blame."""
    rows: dict[tuple[str, int], SourceRow] = {}
    times: list[tuple[tuple[str, int], int]] = []
    for record in records:
        if record.sources_total <= len(record.sources):
            places = {(row.path, row.row): row for row in record.sources}
            rows |= places
            times += ((place, record.ms) for place in places)
    for place, total in _sums(times):
        yield SlowInput(ms=total.ms, records=total.records, source=rows[place])


def _operations(topology: Topology, booked: Sequence[_Booked]) -> Iterator[SlowOperation]:
    operations = {one.node: operation_of(topology, one.node) for one in booked}
    by_number = {node.number: node for node in operations.values() if node is not None}
    times = ((node.number, one.ms) for one in booked if (node := operations[one.node]) is not None)
    for number, total in _sums(times):
        node = by_number[number]
        yield SlowOperation(
            ms=total.ms,
            records=total.records,
            node_id=_node_id(topology, number),
            name=node.name,
            call_site=node.call_site,
        )


def _partitions(topology: Topology, booked: Sequence[_Booked]) -> Iterator[SlowPartition]:
    def place(one: _Booked) -> tuple[int, int]:
        operation = operation_of(topology, one.node)
        return one.node if operation is None else operation.number, one.run.partition

    for (number, partition), total in _sums((place(one), one.ms) for one in booked):
        yield SlowPartition(
            ms=total.ms,
            records=total.records,
            node_id=_node_id(topology, number),
            partition=partition,
        )


def _sums(times: Iterable[tuple[Key, int]]) -> list[tuple[Key, _Sum]]:
    """The times of each, the longest first; equal ones as they came."""
    sums: dict[Key, _Sum] = {}
    for key, ms in times:
        sums[key] = sums.get(key, _Sum()).with_time(ms)
    return sorted(sums.items(), key=lambda item: -item[1].ms)

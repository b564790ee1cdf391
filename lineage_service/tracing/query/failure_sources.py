"""The input rows of a failure: those that its record was made of, or the bound that is known instead.

Promises that rows which are only a bound come with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from lineage_service.errors import TimeBudgetError
from lineage_service.lineage import SourceRow, Trace
from lineage_service.queries import TraceQuery
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.model.elements import FailedRun, TopologyNode
from lineage_service.tracing.model.topology import Topology, shuffled_nodes
from lineage_service.tracing.query.failure_bounds import MOST_ROWS, Bound, FailureBounds, has_read_of_own
from lineage_service.tracing.query.open_applications import Opened
from lineage_service.tracing.walk.result import Position, nodes_before
from spark_agent import contract

__all__ = ["NO_POSITION", "FailureSources", "Sources", "TraceAt", "record_of"]

NO_POSITION = "which record the function had is not known"
_LAST_READ = "it is the last record that was read, or one of a group"
_ONE_OF_RECORDS = "it is one of the records that the function had read by then, or one of a batch"
_ONE_OF_TASK = "it may be any record that the task had read by then"
_BEFORE_ALL = "the task had read no record yet"
_NOT_READ = "a record of the input could not be read: it is not one of those that were read before"
_NOT_READ_YET = "a record of the input could not be read: it is one behind those that were read before"
_NOT_STORED = "what the failed task has sent is not stored, or not yet"
_UPPER_BOUND = "its lineage is an upper bound"
_NOT_REPORTED = (
    "what the failed task had read before a union, a zip, a coalesce or a change between RDDs and DataFrames "
    "was not reported, so its input rows are not known"
)
_NO_TASK = "no task has reported it"
_NO_TIME = "there was no time left to find its input rows: ask again"
_OF_SPLIT = f"{_NO_TASK}, so it may be any row of its partition of the input"
_OF_INPUTS = "so it may be any row of the inputs that was read"
_AS_STORED = ", as far as is stored: the lineage of the application is not complete"
#: Actions whose jobs may run some partitions only: a task's number is not that of its partition.
_OF_SOME_PARTITIONS = frozenset(("first", "isEmpty", "lookup", "runJob", "take", "toLocalIterator"))

TraceAt = Callable[[Opened, Position, TraceQuery], Trace]


@dataclass(frozen=True, slots=True)
class Sources:
    """The input rows of a culprit, as far as they are known."""

    rows: tuple[SourceRow, ...] = ()
    total: int = 0
    reason: str = ""
    has_all: bool = False  # are all rows of the culprit among them, if also others may be
    is_traced: bool = False  # does a trace of its record name them all

    @property
    def is_whole_answer(self) -> bool:
        """Was there time to look for them?"""
        return self.reason != _NO_TIME


def record_of(topology: Topology, failed: FailedRun) -> Position | None:
    """Where the record is in the run that failed; None if it is not known, or is one of several."""
    run, node = failed.run, failed.node_before
    nodes = (run.input, *run.nodes)
    is_followed = all(number in topology.nodes for number in nodes[: nodes.index(node) + 1])
    is_one = failed.first is None or failed.first == failed.position
    if failed.position is None or not is_one or not is_followed or run.number not in topology.runs:
        return None
    return Position(node, run.partition, failed.position, run.number)


class FailureSources:
    """Those of open applications."""

    def __init__(self, trace_at: TraceAt, locations: RecordLocations) -> None:
        self._trace_at, self._bounds = trace_at, FailureBounds(locations)

    def of_run(self, opened: Opened, failed: FailedRun, check: Check) -> Sources:
        """Of a task that has reported what it failed on. `check` raises TimeBudgetError in time."""
        try:
            check()
            return self._of_run(opened, failed, check)
        except TimeBudgetError:
            return Sources(reason=_NO_TIME)

    def of_partition(
        self, opened: Opened, sink: TopologyNode, stage: int, partition: int | None, check: Check
    ) -> Sources:
        """Of a task that has reported nothing: all rows that it may have read.

        None for `partition`: it is not known which one it had.
        """
        try:
            return self._of_partition(opened, sink, stage, partition, check)
        except TimeBudgetError:
            return Sources(reason=f"{_NO_TASK}, and {_NO_TIME}")

    def _of_run(self, opened: Opened, failed: FailedRun, check: Check) -> Sources:
        topology = opened.graph.topology
        start = record_of(topology, failed)
        sources = (
            self._among_records(opened, failed, check)
            if start is None
            else self._traced(opened, failed, start)
        )
        if sources.has_all or _is_unread(topology, failed) or _is_of_program(failed):
            return sources
        stage = failed.run.stage if failed.run.nodes else None  # a function of an RDD says nothing of scans
        bound = self._bounds.of_inputs(opened, [_read_for(topology, failed)], check, unless_in=stage)
        if bound is None or not bound.total:
            return sources
        as_stored, has_all = _as_stored(opened), opened.application.complete
        if start is not None and sources.is_traced:  # the one at hand, which is told first
            others = tuple(row for row in bound.rows if row not in sources.rows)
            rows = (*sources.rows, *others)[:MOST_ROWS]
            reason = f"{sources.reason}{as_stored}"
            return replace(sources, rows=rows, total=bound.total, reason=reason, has_all=has_all)
        reason = sources.reason.removesuffix(", so its input rows are not known")
        return Sources(bound.rows, bound.total, f"{reason}, {_OF_INPUTS}{as_stored}", has_all=has_all)

    def _of_partition(
        self, opened: Opened, sink: TopologyNode, stage: int, partition: int | None, check: Check
    ) -> Sources:
        node = _input_of(opened, sink, stage) if partition is not None else None
        if node is not None and partition is not None:
            count = self._bounds.rows_in(node, partition, check)
            if count is not None:
                return _bounded(self._bounds.of_partition(node, partition, range(count), check), _OF_SPLIT)
        bound = self._bounds.of_inputs(opened, [sink.number], check, unless_in=stage)
        if bound is None:
            return Sources(reason=_NO_TASK)
        reason = f"{_NO_TASK}, {_OF_INPUTS}{_as_stored(opened)}"
        return Sources(bound.rows, bound.total, reason, has_all=opened.application.complete)

    def _traced(self, opened: Opened, failed: FailedRun, start: Position) -> Sources:
        """Those of the record that the task says it was."""
        query = TraceQuery(direction="backward", across=False, limit=MOST_ROWS)
        trace = self._trace_at(opened, start, query)
        nodes = [node for node in trace.nodes if node.kind == "source"]
        rows = [record.source for node in nodes for record in node.records if record.source is not None]
        if failed.is_stored and has_read_of_own(opened.graph.topology, failed.run):
            return Sources(reason=_NOT_REPORTED)
        reason = _reason(failed, trace)
        return Sources(
            tuple(rows[:MOST_ROWS]),
            sum(node.total for node in nodes),
            reason,
            has_all=reason in ("", _UPPER_BOUND),
            is_traced=reason not in (_NOT_STORED, _NOT_REPORTED),
        )

    def _among_records(self, opened: Opened, failed: FailedRun, check: Check) -> Sources:
        """Those of several records, of which it is one."""
        run = failed.run
        if not failed.is_stored:
            return Sources(reason=failed.reason or _NOT_STORED)
        if failed.position is not None and failed.first is not None:
            records, node = range(failed.first, failed.position + 1), failed.node_before
            reason = failed.reason or _ONE_OF_RECORDS
        elif not run.nodes or _is_of_program(failed):  # of a query: what other tasks gave it may be to blame
            return Sources(reason=failed.reason or NO_POSITION)
        elif failed.node == run.input:
            return self._of_reading(opened, failed, check)
        else:
            records, node, reason = range(run.inputs), run.input, failed.reason or _ONE_OF_TASK
        if not records:
            return Sources(reason=_BEFORE_ALL, has_all=True)
        bound = self._bounds.of_records(opened, run, node, records, check)
        if bound is None:
            return Sources(reason=failed.reason or _NOT_REPORTED)
        return _bounded(bound, reason)

    def _of_reading(self, opened: Opened, failed: FailedRun, check: Check) -> Sources:
        """A record of the input could not be read: those behind the last one that was."""
        run, node = failed.run, opened.graph.topology.nodes.get(failed.run.input)
        count = (
            None
            if node is None or node.kind != "source"
            else self._bounds.rows_in(node, run.partition, check)
        )
        if node is None or count is None or count <= run.inputs:
            return Sources(reason=_NOT_READ)
        behind = range(run.inputs, count)
        return _bounded(self._bounds.of_partition(node, run.partition, behind, check), _NOT_READ_YET)


def _bounded(bound: Bound, reason: str) -> Sources:
    return Sources(bound.rows, bound.total, reason, has_all=True)


def _is_unread(topology: Topology, failed: FailedRun) -> bool:
    """May it be a row of an input that was not a record yet?"""
    node = topology.nodes.get(failed.run.input)
    is_of_source = failed.node == failed.run.input and node is not None and node.kind == "source"
    is_of_function = is_of_source and bool(failed.run.nodes)
    return failed.position is None and (failed.first is not None or is_of_function)


def _is_of_program(failed: FailedRun) -> bool:
    """Has a program without Spark reported it?"""
    return failed.run.nodes == (failed.run.input,)


def _reason(failed: FailedRun, trace: Trace) -> str:
    if not failed.is_stored:
        return _NOT_STORED
    if not failed.is_certain:
        return failed.reason or _LAST_READ
    if not any(node.total for node in trace.nodes if node.kind == "source"):
        return _NOT_REPORTED
    return "" if trace.exact else _UPPER_BOUND


def _as_stored(opened: Opened) -> str:
    """What is to be said of a bound by all that is known to be read."""
    return "" if opened.application.complete else _AS_STORED


def _read_for(topology: Topology, failed: FailedRun) -> int:
    """The node whose inputs a task may have read: the action's that a function of an RDD ran for.

    A query says its action by the scans that it read, and another one may share these: then it is all behind.
    """
    action, begin = failed.action, failed.run.input
    if action is None or action not in topology.nodes or not failed.run.nodes:
        return begin
    return action if begin in nodes_before(topology, [action]) else begin


def _input_of(opened: Opened, sink: TopologyNode, stage: int) -> TopologyNode | None:
    """The source that the tasks of a stage read, if each of them reads the partition that has its number."""
    topology = opened.graph.topology
    way = list(_way_to_source(topology, sink))
    source = way[-1] if way else None
    if source is None or source.kind != "source" or source.by_id or sink.name in _OF_SOME_PARTITIONS:
        return None
    runs = [run for run in topology.runs.values() if run.number >= 0]
    inputs = {run.input for run in runs if run.stage == stage}
    # If no stage of its job has ended, the first one has failed: it begins with the source.
    is_first = opened.application.complete and not any(run.action == sink.number for run in runs)
    return source if inputs == {source.number} or (not inputs and is_first) else None


def _way_to_source(topology: Topology, sink: TopologyNode) -> Iterator[TopologyNode]:
    """From an action back to its source, if all between have its partitions; else nothing.

    Where a shuffle was read before, a stage may run for those partitions only that were lost since.
    """
    shuffled = shuffled_nodes(topology)
    way: list[TopologyNode] = []
    node: TopologyNode | None = sink
    while node is not None:
        is_divided_otherwise = node.relation in (contract.STATIC, contract.DATASET)
        if len(node.parents) > 1 or is_divided_otherwise or node.number in shuffled:
            return
        way.append(node)
        node = topology.nodes.get(node.parents[0]) if node.parents else None
    yield from way

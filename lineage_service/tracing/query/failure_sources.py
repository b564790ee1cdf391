"""The input rows of a failure: those that its record was made of, or the bound that is known instead.

Promises that rows which are only a bound come with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lineage_service.errors import TimeBudgetError
from lineage_service.lineage import SourceRow, Trace
from lineage_service.queries import TraceQuery
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.model.elements import FailedRun, TaskRun, TopologyNode
from lineage_service.tracing.model.topology import Topology, shuffled_nodes
from lineage_service.tracing.query.open_applications import Opened
from lineage_service.tracing.walk.result import Position

__all__ = ["NO_POSITION", "FailureSources", "Sources", "TraceAt", "record_of"]

#: Input rows that are listed of a failure.
_MOST_ROWS = 100

NO_POSITION = "which record the function had is not known"
_LAST_READ = "it is the last record that was read, or one of a group"
_NOT_STORED = "what the failed task has sent is not stored, or not yet"
_UPPER_BOUND = "its lineage is an upper bound"
_NOT_REPORTED = (
    "what the failed task had read before a union, a zip, a coalesce or a change between RDDs and DataFrames "
    "was not reported, so its input rows are not known"
)
_NO_TASK = "no task has reported it"
_NO_TIME = "there was no time left to find its input rows: ask again"
_OF_SPLIT = f"{_NO_TASK}, so it may be any row of its partition of the input"

TraceAt = Callable[[Opened, Position, TraceQuery], Trace]


@dataclass(frozen=True, slots=True)
class Sources:
    """The input rows of a culprit, as far as they are known."""

    rows: tuple[SourceRow, ...] = ()
    total: int = 0
    reason: str = ""

    @property
    def has_all(self) -> bool:
        """Are all rows of the culprit among them, if also others may be?"""
        return self.reason in ("", _LAST_READ, _UPPER_BOUND)

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
        self._trace_at, self._locations = trace_at, locations

    def of_run(self, opened: Opened, failed: FailedRun, check: Check) -> Sources:
        """Of a task that has reported what it failed on. `check` raises TimeBudgetError in time."""
        try:
            check()
            return self._of_run(opened, failed, check)
        except TimeBudgetError:
            return Sources(reason=_NO_TIME)

    def of_partition(
        self, opened: Opened, sink: TopologyNode, stage: int, partition: int, check: Check
    ) -> Sources:
        """Of a task that has reported nothing: all rows that it may have read, if it began with an input."""
        try:
            return self._of_partition(opened, sink, stage, partition, check)
        except TimeBudgetError:
            return Sources(reason=f"{_NO_TASK}, and {_NO_TIME}")

    def _of_run(self, opened: Opened, failed: FailedRun, check: Check) -> Sources:
        start = record_of(opened.graph.topology, failed)
        if start is not None:
            return self._traced(opened, failed, start)
        reason = failed.reason or NO_POSITION
        node = opened.graph.topology.nodes.get(failed.run.input)
        if failed.position is None or failed.first is None or node is None:
            return Sources(reason=reason)
        records = range(failed.first, failed.position + 1)
        return self._rows(node, failed.run.partition, records, reason, check)

    def _of_partition(
        self, opened: Opened, sink: TopologyNode, stage: int, partition: int, check: Check
    ) -> Sources:
        node = _input_of(opened.graph.topology, sink, stage)
        info = None if node is None else node.partitions.get(partition)
        path, start, length = (None if info is None else info.get(key) for key in ("path", "start", "length"))
        if node is None or not node.is_text or not isinstance(start, int) or not isinstance(length, int):
            return Sources(reason=_NO_TASK)
        first = self._locations.rows_before(str(path), start, check)
        end = self._locations.rows_before(str(path), start + length, check)
        if first is None or end is None:
            return Sources(reason=_NO_TASK)
        return self._rows(node, partition, range(end - first), _OF_SPLIT, check)

    def _traced(self, opened: Opened, failed: FailedRun, start: Position) -> Sources:
        query = TraceQuery(direction="backward", across=False, limit=_MOST_ROWS)
        trace = self._trace_at(opened, start, query)
        nodes = [node for node in trace.nodes if node.kind == "source"]
        rows = [record.source for node in nodes for record in node.records if record.source is not None]
        if failed.is_stored and _has_read_of_own(opened.graph.topology, failed.run):
            return Sources(reason=_NOT_REPORTED)
        return Sources(
            tuple(rows[:_MOST_ROWS]),
            sum(node.total for node in nodes),
            _reason(failed, trace),
        )

    def _rows(self, node: TopologyNode, partition: int, records: range, reason: str, check: Check) -> Sources:
        """The records of one partition of an input. Those of other nodes are not told as input rows."""
        if node.kind != "source":
            return Sources(reason=reason)
        places = [(partition, offset) for offset in records[:_MOST_ROWS]]
        rows = self._locations.rows_of(node, places, check)
        return Sources(tuple(rows[place] for place in places if place in rows), len(records), reason)


def _has_read_of_own(topology: Topology, run: TaskRun) -> bool:
    """Has it read what its own task made? That was never committed; the runs of other tasks are no bound."""
    node = topology.nodes.get(run.input)
    is_lost = (run.input, run.partition) in topology.lost or (node is not None and node.by_id)
    return run.number in topology.unresolved and is_lost


def _reason(failed: FailedRun, trace: Trace) -> str:
    if not failed.is_stored:
        return _NOT_STORED
    if not failed.is_certain:
        return failed.reason or _LAST_READ
    if not any(node.total for node in trace.nodes if node.kind == "source"):
        return _NOT_REPORTED
    return "" if trace.exact else _UPPER_BOUND


def _input_of(topology: Topology, sink: TopologyNode, stage: int) -> TopologyNode | None:
    """The source that the tasks of a stage read, if it is one, and each of them one partition of it."""
    runs = [run for run in topology.runs.values() if run.number >= 0]
    inputs = {run.input for run in runs if run.stage == stage}
    if not inputs and not any(run.action == sink.number for run in runs):
        inputs = set(_only_sources(topology, sink))
    node = topology.nodes.get(inputs.pop()) if len(inputs) == 1 else None
    return node if node is not None and node.kind == "source" else None


def _only_sources(topology: Topology, sink: TopologyNode) -> Iterable[int]:
    """The source of an action, if it has one, whose partitions are those of all operations up to there.

    No stage of its job has ended, so the first one has failed: it begins with the source.
    """
    shuffled = shuffled_nodes(topology)
    node: TopologyNode | None = sink
    while node is not None and node.parents:
        is_divided_otherwise = any("parents" in info for info in node.partitions.values())
        if len(node.parents) > 1 or node.number in shuffled or is_divided_otherwise:
            return
        node = topology.nodes.get(node.parents[0])
    if node is not None:
        yield node.number

"""The failures of an application: attempts of a task that failed alike, and what they failed on.

A failed run counts nowhere. It is among the runs of an application that is opened `has_failed`, so that a
trace may begin in it. Promises that nothing is called exact whose flows are not all stored.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from lineage_service.errors import InvalidQueryError, NotFoundError
from lineage_service.lineage import ApplicationError, FailedRecord, Failure, Failures, SourceRow, Trace
from lineage_service.queries import TraceQuery
from lineage_service.tracing.model.elements import FailedRun, TaskRun, TopologyNode
from lineage_service.tracing.model.topology import Topology
from lineage_service.tracing.query.open_applications import Opened
from lineage_service.tracing.walk.result import Position
from spark_agent import contract

__all__ = ["FailureReader"]

#: Input rows that are listed of a failure.
_MOST_ROWS = 100
#: Failed attempts whose input rows are looked for.
_MOST_TRACED = 200
#: Messages that begin with so many equal characters are the same: that of an end may be cut.
_SAME = 900
_TASK = re.compile(r"Task (?P<partition>[0-9]+) in stage (?P<stage>[0-9]+)")

_LAST_READ = "it is the last record that was read, or one of a group"
_NO_POSITION = "which record the function had is not known"
_NOT_STORED = "what the failed task has sent is not stored, or not yet"
_UPPER_BOUND = "its lineage is an upper bound"
_NOT_REPORTED = (
    "what the failed task had read before a union, a zip or a coalesce was not reported, so its input rows "
    "are not known"
)
#: Reasons why input rows may be missing, not only others be among them.
_UNKNOWN_ROWS = (_NO_POSITION, _NOT_STORED, _NOT_REPORTED)
_NO_REPORT = (
    "No task has reported which record it failed on. So it is when a worker is killed, when the driver or "
    "the JVM fails, in queries of DataFrames, in jobs that an operation runs for itself, and in a program "
    "without Spark that does not say it."
)
_NOT_ALL = "Of some failures the record is not known for sure: `reason` says why."
_OPEN = "The lineage of the application is not complete: failures may be missing."

TraceAt = Callable[[Opened, Position, TraceQuery], Trace]


@dataclass(frozen=True, slots=True)
class _Sources:
    """The input rows of a culprit, as far as they are known."""

    rows: tuple[SourceRow, ...] = ()
    total: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _FailedTask:
    """Attempts of one task that failed alike, the earliest first."""

    runs: tuple[FailedRun, ...]
    sources: _Sources


class FailureReader:
    """Reads them from open applications."""

    def __init__(self, trace_at: TraceAt) -> None:
        self._trace_at = trace_at
        #: Failures of one application are asked for one after the other.
        self._last: tuple[Opened, list[_FailedTask]] | None = None

    def failures(self, opened: Opened) -> Failures:
        """All that are known."""
        topology, application = opened.graph.topology, opened.application
        listed = [_of_task(topology, task) for task in self._grouped(opened)]
        reported = {failed.run.action for failed in topology.failed.values()}
        unreported = list(_unreported(opened, reported))
        ordered = [replace(failure, failure=at) for at, failure in enumerate((*listed, *unreported), start=1)]
        how = [_NO_REPORT] if unreported else []
        how += [_NOT_ALL] if any(not failure.exact for failure in listed) else []
        how += [] if application.complete else [_OPEN]
        return Failures(
            application_id=application.application_id,
            name=application.name,
            failures=tuple(ordered),
            complete=not how,
            how=" ".join(how),
        )

    def start(self, opened: Opened, query: TraceQuery) -> Position:
        """The culprit of a failure, in the run that failed. Raises NotFoundError, InvalidQueryError."""
        if query.direction != "backward":
            raise InvalidQueryError("a record that made a task fail went into nothing: trace it backward")
        tasks, number = self._tasks(opened), query.failure or 0
        if not 1 <= number <= len(tasks):
            raise NotFoundError(
                f"application {opened.application.application_id} has no failure {number} with a record; "
                "`lineage failures` lists them"
            )
        failed = tasks[number - 1].runs[-1]
        start = _position(opened.graph.topology, failed)
        if start is None:
            raise NotFoundError(f"failure {number}: {_NO_POSITION}")
        return start

    def doubt(self, opened: Opened, number: int) -> tuple[str, bool]:
        """Why the input rows of a failure are not exactly known, else empty; and are they known at all?"""
        reason = self._tasks(opened)[number - 1].sources.reason
        return reason, reason not in _UNKNOWN_ROWS

    def _tasks(self, opened: Opened) -> list[_FailedTask]:
        """By the time of their first attempts."""
        last = self._last
        if last is None or last[0] is not opened:
            last = self._last = opened, self._grouped(opened)
        return last[1]

    def _grouped(self, opened: Opened) -> list[_FailedTask]:
        groups: dict[object, list[tuple[FailedRun, _Sources]]] = defaultdict(list)
        runs = sorted(
            opened.graph.topology.failed.values(),
            key=lambda failed: (failed.time, failed.event, failed.run.number),
        )
        for at, failed in enumerate(runs):
            sources = self._sources(opened, failed) if at < _MOST_TRACED else _Sources(reason=_NO_POSITION)
            rows = tuple((row.path, row.row) for row in sources.rows)
            run = failed.run
            groups[run.stage, run.partition, run.nodes, failed.node, failed.error, rows].append(
                (failed, sources)
            )
        return [_FailedTask(tuple(failed for failed, _ in group), group[-1][1]) for group in groups.values()]

    def _sources(self, opened: Opened, failed: FailedRun) -> _Sources:
        start = _position(opened.graph.topology, failed)
        if start is None:
            return _Sources(reason=_NO_POSITION)
        query = TraceQuery(direction="backward", across=False, limit=_MOST_ROWS)
        trace = self._trace_at(opened, start, query)
        nodes = [node for node in trace.nodes if node.kind == "source"]
        rows = [record.source for node in nodes for record in node.records if record.source is not None]
        return _Sources(
            tuple(rows[:_MOST_ROWS]),
            sum(node.total for node in nodes),
            _reason(failed, trace),
        )


def _reason(failed: FailedRun, trace: Trace) -> str:
    if not failed.is_stored:
        return _NOT_STORED
    if not failed.is_certain:
        return _LAST_READ
    if trace.exact:
        return ""
    return _UPPER_BOUND if any(node.total for node in trace.nodes if node.kind == "source") else _NOT_REPORTED


def _position(topology: Topology, failed: FailedRun) -> Position | None:
    """Where the record is in the run that failed."""
    run, node = failed.run, failed.node_before
    nodes = (run.input, *run.nodes)
    is_followed = all(number in topology.nodes for number in nodes[: nodes.index(node) + 1])
    if failed.position is None or not is_followed or run.number not in topology.runs:
        return None
    return Position(node, run.partition, failed.position, run.number)


def _of_task(topology: Topology, task: _FailedTask) -> Failure:
    failed = task.runs[-1]
    run, node = failed.run, _public(topology, failed)
    start = _position(topology, failed)
    return Failure(
        failure=0,
        error=failed.error,
        message=failed.message,
        frame=failed.frame,
        **_named(topology, node),
        stage=run.stage,
        partition=run.partition,
        attempts=len(task.runs),
        record=None if start is None else _record(topology, failed, start),
        sources=task.sources.rows,
        sources_total=task.sources.total,
        exact=not task.sources.reason,
        recovered=any(
            number not in topology.failed and _is_recovery(other, run)
            for number, other in topology.runs.items()
        ),
        reason=task.sources.reason,
    )


def _is_recovery(other: TaskRun, run: TaskRun) -> bool:
    """Is it a run of a later attempt of the same task?"""
    is_same = (other.stage, other.partition, other.nodes) == (run.stage, run.partition, run.nodes)
    return is_same and other.attempt > run.attempt


def _public(topology: Topology, failed: FailedRun) -> TopologyNode | None:
    """The operation whose function failed: that of an internal node, or the action where it is no node."""
    node = topology.nodes.get(failed.node)
    if node is None:
        return None if failed.run.action is None else topology.nodes.get(failed.run.action)
    if node.is_public or node.operation is None:
        return node
    return topology.nodes.get(node.operation, node)


def _named(topology: Topology, node: TopologyNode | None) -> dict[str, str | None]:
    return {
        "node_id": None if node is None else contract.node_id(topology.application_id, node.number),
        "name": None if node is None else node.name,
        "call_site": None if node is None else node.call_site or None,
    }


def _record(topology: Topology, failed: FailedRun, start: Position) -> FailedRecord:
    node = topology.nodes[start.node]
    return FailedRecord(
        record_id=contract.record_id(node.kind, start.partition, start.offset),
        node_id=contract.node_id(topology.application_id, node.number),
        value=None if failed.record is None else failed.record[1],
    )


def _unreported(opened: Opened, reported: set[int | None]) -> Iterator[Failure]:
    """Actions that failed, and the end of the application, where no task said which record it was."""
    topology, error = opened.graph.topology, opened.application.error
    failed = [
        node
        for node in sorted(topology.nodes.values(), key=lambda node: node.number)
        if node.outcome is not None and node.outcome.state == "failed"
    ]
    for node in failed:
        if node.number not in reported:
            said = node.outcome.error if node.outcome is not None else None
            kind, message, frame = ("", "", None) if said is None else (said.type, said.message, said.frame)
            yield _without_record(topology, kind, message, frame, node)
    if error is not None and error.node_id is None and not failed and not _is_reported(topology, error):
        yield _without_record(topology, error.type, error.message, error.frame, None)


def _is_reported(topology: Topology, error: ApplicationError) -> bool:
    """Is the error that has ended the application among those with a record?"""
    return any(
        (failed.error, failed.frame) == (error.type, error.frame)
        and failed.message.partition("\n")[0][:_SAME] == error.message[:_SAME]
        for failed in topology.failed.values()
    )


def _without_record(
    topology: Topology, kind: str, message: str, frame: str | None, node: TopologyNode | None
) -> Failure:
    task = _TASK.search(message)
    return Failure(
        failure=0,
        error=kind,
        message=message,
        frame=frame,
        **_named(topology, node),
        stage=int(task["stage"]) if task else None,
        partition=int(task["partition"]) if task else None,
        attempts=0,
        record=None,
        sources=(),
        sources_total=0,
        exact=False,
        recovered=False,
        reason="no task has reported it",
    )

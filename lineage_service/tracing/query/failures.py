"""The failures of an application: attempts of a task that failed alike, and what they failed on.

A failed run counts nowhere. It is among the runs of an application that is opened `has_failed`, so that a
trace may begin in it. Promises that nothing is called exact whose flows are not all stored.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from time import monotonic

from lineage_service.errors import InvalidQueryError, NotFoundError, TimeBudgetError
from lineage_service.lineage import ApplicationError, FailedRecord, Failure, Failures, NodeError
from lineage_service.queries import TraceQuery
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.model.elements import FailedRun, TaskRun, TopologyNode
from lineage_service.tracing.model.topology import Topology, operation_of
from lineage_service.tracing.query.failure_sources import (
    NO_POSITION,
    FailureSources,
    Sources,
    TraceAt,
    record_of,
)
from lineage_service.tracing.query.open_applications import Opened
from lineage_service.tracing.walk.result import Position, nodes_behind
from spark_agent import contract

__all__ = ["FailureReader"]

#: Failed attempts whose input rows are looked for.
_MOST_TRACED = 200
#: Messages that begin with so many equal characters are the same: that of an end may be cut.
_SAME = 900
#: The number of a task is that of its partition, unless the stage is tried again for those that lack.
_TASK = re.compile(r"Task (?P<task>[0-9]+) in stage (?P<stage>[0-9]+)(?:\.(?P<attempt>[0-9]+))?")

_NO_REPORT = (
    "No task has reported which record it failed on. So it is when a worker of RDDs is killed, when the "
    "driver or an executor fails, in jobs that an operation runs for itself, and in a program without Spark "
    "that does not say it."
)
_NOT_ALL = "Of some failures the record is not known for sure: `reason` says why."
_OPEN = "The lineage of the application is not complete: failures may be missing."
_NO_ERROR = NodeError(type="", message="")


@dataclass(frozen=True, slots=True)
class _FailedTask:
    """Attempts of one task that failed alike, the earliest first."""

    runs: tuple[FailedRun, ...]
    sources: Sources


class FailureReader:
    """Reads them from open applications."""

    def __init__(self, trace_at: TraceAt, locations: RecordLocations, *, time_budget_s: float) -> None:
        self._sources = FailureSources(trace_at, locations)
        self._time_budget_s = time_budget_s
        #: Failures of one application are asked for one after the other.
        self._last: tuple[Opened, list[_FailedTask]] | None = None

    def failures(self, opened: Opened) -> Failures:
        """All that are known."""
        topology, application = opened.graph.topology, opened.application
        check = self._check()
        listed = [_of_task(topology, task) for task in self._grouped(opened, check)]
        unreported = list(self._unreported(opened, check))
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
        start = record_of(opened.graph.topology, failed)
        if start is None and failed.position is not None:
            raise NotFoundError(
                f"failure {number}: it is not known which of several records it was, so no trace begins "
                "there; `lineage failures` lists their input rows"
            )
        if start is None:
            raise NotFoundError(f"failure {number}: {NO_POSITION}")
        return start

    def doubt(self, opened: Opened, number: int) -> tuple[str, bool]:
        """Why the input rows of a failure are not exactly known, else empty; and are they known at all?"""
        sources = self._tasks(opened)[number - 1].sources
        return sources.reason, sources.is_traced

    def _check(self) -> Check:
        """Raises TimeBudgetError once the time of a query is spent."""
        deadline = monotonic() + self._time_budget_s

        def check() -> None:
            if monotonic() >= deadline:
                raise TimeBudgetError("the failures took longer than a query may")

        return check

    def _tasks(self, opened: Opened) -> list[_FailedTask]:
        """By the time of their first attempts."""
        last = self._last
        if last is None or last[0] is not opened:
            last = opened, self._grouped(opened, self._check())
            if all(task.sources.is_whole_answer for task in last[1]):
                self._last = last
        return last[1]

    def _grouped(self, opened: Opened, check: Check) -> list[_FailedTask]:
        groups: dict[object, list[tuple[FailedRun, Sources]]] = defaultdict(list)
        runs = sorted(
            opened.graph.topology.failed.values(),
            key=lambda failed: (failed.time, failed.event, failed.run.number),
        )
        for at, failed in enumerate(runs):
            is_traced = at < _MOST_TRACED
            sources = (
                self._sources.of_run(opened, failed, check) if is_traced else Sources(reason=NO_POSITION)
            )
            # How far a task had read ahead differs from attempt to attempt.
            rows = tuple((row.path, row.row) for row in sources.rows) if failed.first is None else ()
            run = failed.run
            task = run.stage, run.partition, run.input, run.nodes
            groups[(*task, failed.node, failed.error, rows)].append((failed, sources))
        return [_FailedTask(tuple(failed for failed, _ in group), group[-1][1]) for group in groups.values()]

    def _unreported(self, opened: Opened, check: Check) -> Iterator[Failure]:
        """Actions that failed, and the end of the application, where no task said which record it was."""
        topology, error = opened.graph.topology, opened.application.error
        failed = [
            node
            for node in sorted(topology.nodes.values(), key=lambda node: node.number)
            if node.outcome is not None and node.outcome.state == "failed"
        ]
        reported = {failed.action for failed in topology.failed.values()}
        unreported = [node for node in failed if node.number not in reported]
        for node in unreported:
            if not _is_alone_behind_report(topology, node, unreported):
                yield self._without_record(opened, _error_of(node), node, check)
        is_ended = error is not None and error.node_id is None and not failed
        if error is not None and is_ended and not _is_reported(topology, error):
            yield self._without_record(opened, error, None, check)

    def _without_record(
        self, opened: Opened, error: NodeError | ApplicationError, node: TopologyNode | None, check: Check
    ) -> Failure:
        task = _TASK.search(error.message)
        stage = int(task["stage"]) if task else None
        partition = int(task["task"]) if task and not int(task["attempt"] or 0) else None
        sources = Sources(reason="no task has reported it")
        if node is not None and stage is not None:
            sources = self._sources.of_partition(opened, node, stage, partition, check)
        return Failure(
            failure=0,
            error=error.type,
            message=error.message,
            frame=error.frame,
            **_named(opened.graph.topology, node),
            stage=stage,
            partition=partition,
            attempts=0,
            record=None,
            sources=sources.rows,
            sources_total=sources.total,
            exact=False,
            recovered=False,
            reason=sources.reason,
        )


def _of_task(topology: Topology, task: _FailedTask) -> Failure:
    failed = task.runs[-1]
    run, node = failed.run, _public(topology, failed)
    start = record_of(topology, failed)
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
    task, other_task = ((one.stage, one.partition, one.input, one.nodes) for one in (run, other))
    return task == other_task and other.attempt > run.attempt


def _public(topology: Topology, failed: FailedRun) -> TopologyNode | None:
    """The operation whose function failed: that of an internal node, or the action where it is no node."""
    node = operation_of(topology, failed.node)
    if node is None and failed.action is not None:
        return topology.nodes.get(failed.action)
    return node


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


def _is_reported(topology: Topology, error: ApplicationError) -> bool:
    """Is the error that has ended the application among those with a record?"""
    return any(_is_same(failed, error) for failed in topology.failed.values())


def _is_same(failed: FailedRun, error: NodeError | ApplicationError) -> bool:
    message = failed.message.partition("\n")[0]
    is_of_type = (failed.error, failed.frame) == (error.type, error.frame)
    return is_of_type and message[:_SAME] == error.message[:_SAME]


def _error_of(node: TopologyNode) -> NodeError:
    return (None if node.outcome is None else node.outcome.error) or _NO_ERROR


def _is_alone_behind_report(
    topology: Topology, node: TopologyNode, unreported: Sequence[TopologyNode]
) -> bool:
    """Is it the only one of these actions that a run has failed for with this error?

    A worker with a function of an RDD does not know the query that reads it. Of two such actions, it is not
    known which one it ran for.
    """
    nodes = {
        failed.run.nodes[-1]
        for failed in topology.failed.values()
        if failed.action is None and failed.run.nodes and _is_same(failed, _error_of(node))
    }
    behind = nodes_behind(topology, nodes & topology.nodes.keys())
    same = [other for other in unreported if _error_of(other) == _error_of(node) and other.number in behind]
    return same == [node]

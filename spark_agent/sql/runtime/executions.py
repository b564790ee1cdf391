"""The queries that run: what their tasks report, and how each of them ended.

A query begins when its plan is rewritten, or published as it is. Its tasks report their runs; its end says
which action it was and whether it failed. Promises that the records of a failed query are no exact result.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.driver import error_descriptions
from spark_agent.driver.nodes import failure_reason
from spark_agent.sql.files.outputs import Output, Outputs, Written
from spark_agent.sql.rewrite.plan_nodes import PlanNode, publish
from spark_agent.sql.runtime.failed_tasks import FailedTasks
from spark_agent.sql.runtime.file_partitions import FilePartitions
from spark_agent.sql.runtime.fits import Fits
from spark_agent.sql.runtime.iceberg_deletes import IcebergDeletes
from spark_agent.sql.runtime.rdd_boundary import RddBoundary
from spark_agent.sql.runtime.re_executions import ReExecutions
from spark_agent.sql.runtime.whole_file_deletes import WholeFileDeletes
from spark_agent.sql.table_formats.row_operations import deleted_by

if TYPE_CHECKING:
    from spark_agent.driver.session import Session

#: How long the end of an application waits for transactions whose tasks have written, and how often it looks.
_COMMIT_WAIT_S, _COMMIT_POLL_S = 2.0, 0.05
_UNCOMMITTED = "no commit of its transaction was seen: its records may be in no version of the table"
_UNKNOWN_FILES = "which of these rows are in which file is not known"
#: What a task run says of rows that go into files. It is for the driver alone.
_OF_WRITTEN_ROWS = ("places", "lines", "shuffled", "spilled")
#: Sinks of queries that may run, or run again.
_MOST_SINKS = 1_000


class Executions:
    """Those of one application. Queries begin in users' threads; the thread of `JvmEvents` does the rest."""

    def __init__(
        self,
        session: Session,
        re_executions: ReExecutions,
        rdd_boundary: RddBoundary,
        fits: Fits,
        deletes: WholeFileDeletes,
        iceberg_deletes: IcebergDeletes,
    ) -> None:
        self._session, self._fits, self._deletes = session, fits, deletes
        self._iceberg_deletes = iceberg_deletes
        self._re_executions, self._rdd_boundary = re_executions, rdd_boundary
        self._partitions = FilePartitions(session.events.emit)
        self._failed_tasks = FailedTasks(session.events.emit, session.settings, self._partitions.has_files)
        self._outputs = Outputs()
        self._sinks: dict[
            int, tuple[PlanNode, bool, str]
        ] = {}  # and how exact each was when it was published

    def publish(self, nodes: list[PlanNode], **of_tasks: Any) -> None:
        """Publish the nodes of a plan, of which the last is its output's. `of_tasks`: see `FailedTasks`."""
        self._failed_tasks.add_plan(nodes, **of_tasks)
        for sink in (node for node in nodes if node.kind == "sink"):
            self._sinks[sink.number] = sink, sink.exact, sink.reason
            if len(self._sinks) > _MOST_SINKS:
                self._sinks.pop(next(iter(self._sinks)), None)
        self._partitions.add_scans(nodes)
        publish(self._session.events.emit, nodes)

    def begin_output(self, node: int, output: Output) -> None:
        """The query of this node will write files."""
        self._outputs.begin(node, output)

    def committed(self, manifest: dict[str, Any]) -> None:
        """A task run of a tap was accepted."""
        node, split = manifest["input"], manifest["split"]
        self._partitions.scanned(node, split, manifest.pop("parts", None) or [])
        written: dict[str, Any] = {name: manifest.pop(name, None) for name in _OF_WRITTEN_ROWS}
        if not self._fits.takes(manifest) and not self._re_executions.takes(manifest):
            self._session.events.publish_manifest(manifest)
        self._outputs.take(node, split, manifest["outputs"], written)

    def failed(self, report: dict[str, Any]) -> None:
        """An attempt of a task has failed."""
        self._failed_tasks.failed(report)

    def ended(self, nodes: list[int], name: str, *, is_failed: bool, error: dict[str, str] | None) -> None:
        """An execution has ended. `nodes` are the outputs of its plan, `name` is Spark's for the action."""
        for node in nodes:
            if self._deletes.ends(node, is_failed=is_failed):
                continue
            if self._iceberg_deletes.ends(node, is_failed=is_failed):
                continue
            self._re_executions.end(node, name, is_failed=is_failed)
            self._end_sink(node, is_failed=is_failed, error=error)
            written = self._outputs.end(node, is_failed=is_failed)
            if written is not None:
                self._publish_written(written)
        self._rdd_boundary.describe()
        self.look_for_commits()

    def look_for_commits(self, *, is_eager: bool = False) -> None:
        """Publish the files of transactions that were committed since their queries have ended."""
        if not self._outputs.is_awaiting:
            return
        for written in self._outputs.committed(is_eager=is_eager):
            self._publish_written(written)
            if written.output.transaction:
                self._deletes.committed(written.output.transaction, written.commit)

    def _publish_written(self, written: Written) -> None:
        """The files of a sink, and the sink again: with the version of its table, or without files."""
        self._partitions.publish(written.node, written.partitions)
        node, *_ = self._sinks.get(written.node, (None,))
        if node is None or not node.dataset:
            return
        dataset, reason = dict(node.dataset), node.reason
        if written.commit is not None:
            dataset["version"] = str(written.commit.version)
            if dataset.get("operation") == "delete" and node.exact:
                reason = deleted_by(str(dataset["name"]), dataset["version"])
        if written.output.has_unknown_files(written.partitions):
            dataset["unknown_files"] = True
            reason = reason or _UNKNOWN_FILES
            self._session.events.say(f"{_UNKNOWN_FILES}: {node.name} to {dataset['name']}")
        if (dataset, reason) != (node.dataset, node.reason):
            node.dataset, node.reason = dataset, reason
            self._session.events.emit(contract.NODE_REGISTERED, **node.event())

    def taken(self, number: int) -> None:
        """The fit of this number has ended."""
        self._fits.ended(number)

    def end(self) -> None:
        """The application ends."""
        self._re_executions.end_all()
        self._fits.end_all()
        self._deletes.end_all()
        self._iceberg_deletes.end_all()
        self._rdd_boundary.describe()
        self._end_commits()

    def _end_commits(self) -> None:
        """Wait a little for transactions; the records of those that were not committed are no result."""
        until = time.monotonic() + _COMMIT_WAIT_S
        self.look_for_commits(is_eager=True)
        while self._outputs.is_awaiting and time.monotonic() < until:
            time.sleep(_COMMIT_POLL_S)
            self.look_for_commits(is_eager=True)
        for number in self._outputs.uncommitted():
            node, *_ = self._sinks.get(number, (None,))
            if node is not None:
                node.exact, node.reason = False, _UNCOMMITTED
                self._session.events.emit(contract.NODE_REGISTERED, **node.event())

    def _end_sink(self, number: int, *, is_failed: bool, error: dict[str, str] | None) -> None:
        """Of a query that failed, which may run well another time, records are no result."""
        node, exact, reason = self._sinks.get(number, (None, True, ""))
        if node is None:
            return
        ended: dict[str, Any] = {"node": number, "state": contract.ACTION_COMPLETE}
        if is_failed:
            kind, message = (error or {}).get("type", ""), (error or {}).get("message", "")
            cause = error_descriptions.of_jvm(
                kind, message, node.call_site, self._session.settings, node.name
            )
            ended = {"node": number, "state": contract.ACTION_FAILED, "error": cause}
        self._session.events.emit(contract.ACTION_ENDED, **ended)
        exactness = (False, failure_reason(node.name)) if is_failed else (exact, reason)
        if exactness != (node.exact, node.reason):
            node.exact, node.reason = exactness
            self._session.events.emit(contract.NODE_REGISTERED, **node.event())

"""DELETEs of Delta Lake that remove whole files: nobody reads their rows, so no task reports any.

A DELETE without a condition, or with one on columns of partitions alone, only says in the log which files are
gone. So do a TRUNCATE and a write that deletes first (`replaceWhere`). The commit is looked up there. The
rows of these files are then a source, and what became of them is a sink, as of other rows that a DELETE
deletes. No job is run for that, and no data is read but deletion vectors. Promises that what is not known is
published as a query that was not followed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from spark_agent.delivery.log import logger
from spark_agent.driver import partitions
from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.py4j_errors import in_short
from spark_agent.sql.runtime.planned_query import PlanningCall
from spark_agent.sql.runtime.removed_rows import Removal, RemovedRows
from spark_agent.sql.table_formats import delta_log, delta_outputs, whole_files
from spark_agent.sql.table_formats.delta_log import Commit, CommitMark, ReadText, RemovedFile
from spark_agent.sql.table_formats.table_work import Transaction
from spark_agent.sql.table_formats.whole_files import UnknownRowsError
from spark_agent.sql.types import Plan

if TYPE_CHECKING:
    from spark_agent.driver.session import Session

_DELETE = "DELETE"
#: Commands of Delta Lake -> the statements that may remove whole files without a plan that reads rows.
STATEMENTS = {"DeleteCommand": _DELETE, "TruncateDeltaTableCommand": delta_log.TRUNCATE}
#: What a TRUNCATE counts.
_METRICS = ("numRemovedFiles", "numRemovedBytes", "numDeletedRows", "executionTimeMs")


@dataclass(eq=False)
class _Delete:
    """One that runs. `removal` has the nodes that it gets if nothing else tells of its rows.

    `plan` is its command, or that of a query of a write that deletes first.
    """

    plan: Plan
    removal: Removal
    transaction: Transaction | None = None
    is_followed: bool = False  # a plan of its own reads the rows that it deletes
    is_mixed: bool = False  # plans of another one were taken for its own


class WholeFileDeletes:
    """Those of one application. They begin in users' threads, and end in the one of `JvmEvents`."""

    def __init__(
        self,
        session: Session,
        catalyst: Catalyst,
        rows: RemovedRows,
        vectors: Any,
        read: ReadText,
    ) -> None:
        """`vectors` is DeletionVectors of the JVM; `read` reads a file of a log."""
        self._session, self._catalyst, self._rows = session, catalyst, rows
        self._vectors, self._read = vectors, read
        self._lock = threading.Lock()
        self._running: dict[int | None, _Delete] = {}  # by the thread of the JVM
        self._open: dict[int, _Delete] = {}  # by their sinks
        self._of_writes: dict[str, _Delete] = {}  # by their transactions

    def begin(self, command: Plan, kind: str, call: PlanningCall, call_site: str) -> int:
        """A DELETE or a TRUNCATE is about to run. The number by which its end is to be reported."""
        delete = self._new(command, STATEMENTS[kind], call_site)
        if delete.removal.statement == delta_log.TRUNCATE:
            try:
                delete.transaction = delta_outputs.of_truncate(self._catalyst, command)
            except Exception:  # noqa: BLE001 - another Delta Lake; its end says that nothing is known
                logger.debug("the table of a TRUNCATE is not known", exc_info=True)
        with self._lock:
            self._running[call.thread] = self._open[delete.removal.sink] = delete
        return delete.removal.sink

    def see(self, plan: Plan, call: PlanningCall, site: Callable[[], str]) -> None:
        """A plan is made: it may be one of a DELETE in this thread, or of a write that deletes first."""
        work = call.work
        if work is None or not work.is_of_delete:
            self._running.pop(call.thread, None)  # it has ended
            return
        delete = self._running.get(call.thread)
        if delete is None and work.transaction is not None:
            delete = self._of_writes.get(work.transaction.id)
            if delete is None:
                delete = self._of_writes[work.transaction.id] = self._new(plan, _DELETE, site())
        if delete is None:
            return
        delete.is_followed |= work.is_of_rows
        if delete.transaction is None:
            delete.transaction = work.transaction
        elif work.transaction is not None and work.transaction.id != delete.transaction.id:
            delete.is_mixed = True  # threads of the JVM are not told apart

    def _new(self, plan: Plan, statement: str, call_site: str) -> _Delete:
        return _Delete(plan, self._rows.removal(statement, call_site))

    def ends(self, number: int, *, is_failed: bool = False) -> bool:
        """Is that the number of a DELETE, which has ended? Publishes what it removed. Never raises."""
        with self._lock:
            delete = self._open.pop(number, None)
        if delete is not None and (delete.is_mixed or not delete.is_followed):
            self._safely(delete, partial(self._look_up, delete, is_failed=is_failed))
        return delete is not None

    def committed(self, transaction: str, commit: Commit) -> None:
        """A write has been committed. Publishes what it deleted first. Never raises."""
        delete = self._of_writes.pop(transaction, None)
        if delete is not None and not delete.is_followed:
            self._safely(delete, partial(self._publish, delete, commit))

    def end_all(self) -> None:
        """The application ends: what has not ended by now has removed its files, or will not be seen to."""
        for number in list(self._open):
            self.ends(number)
        for delete in self._of_writes.values():
            if not delete.is_followed:  # and the query of the write was none that is followed
                self._safely(delete, partial(self._look_in_log, delete))

    def _safely(self, delete: _Delete, tell: Callable[[], object]) -> None:
        try:
            tell()
        except UnknownRowsError as error:
            self._not_known(delete, str(error))
        except Exception as error:  # noqa: BLE001 - a log that cannot be read, or another Delta Lake
            logger.debug("what a DELETE removed could not be looked up", exc_info=True)
            self._not_known(delete, in_short(error))

    def _look_up(self, delete: _Delete, *, is_failed: bool) -> None:
        """Raises UnknownRowsError, OSError and what py4j raises."""
        if not int(delete.plan.metrics().apply("numRemovedFiles").value()):
            return
        if delete.transaction is None or delete.is_mixed:
            why = "another one ran at the same time" if delete.is_mixed else "its transaction was not seen"
            raise UnknownRowsError(why)
        if not self._look_in_log(delete) and not is_failed:
            raise UnknownRowsError("its commit was not seen in the log")

    def _look_in_log(self, delete: _Delete) -> bool:
        """Is it committed? Then publishes what it removed. Raises as `_publish`."""
        transaction = delete.transaction
        assert transaction is not None
        table, _ = delta_outputs.place_of(delete.plan, transaction)
        mark = CommitMark(transaction.id) if transaction.id else CommitMark(metrics=self._metrics(delete))
        commit, _ = delta_log.commit_of(table, mark, transaction.version, self._read)
        if commit is not None:
            self._publish(delete, commit)
        return commit is not None

    def _metrics(self, delete: _Delete) -> dict[str, str]:
        metrics = delete.plan.metrics()
        return {name: str(metrics.apply(name).value()) for name in _METRICS}

    def _publish(self, delete: _Delete, commit: Commit) -> None:
        """Raises UnknownRowsError, OSError and what py4j raises."""
        assert delete.transaction is not None
        table, dataset = delta_outputs.place_of(delete.plan, delete.transaction)
        if sum(file.vector is not None for file in commit.removed) > whole_files.MOST_VECTORS:
            raise UnknownRowsError(f"more than {whole_files.MOST_VECTORS} of the files had deletion vectors")
        removed = whole_files.partitions_of(
            commit.removed, partial(self._deleted_before, table), partial(_described, table)
        )
        if removed:
            self._rows.publish(delete.removal, table, dataset, str(commit.version), removed)

    def _deleted_before(self, table: str, file: RemovedFile) -> whole_files.Runs:
        vector = file.vector or {}
        offset = vector.get("offset")
        runs = self._vectors.rows(
            self._session.context._jsc.hadoopConfiguration(),
            table,
            vector["storageType"],
            vector["pathOrInlineDv"],
            -1 if offset is None else offset,
            vector["sizeInBytes"],
            vector["cardinality"],
            whole_files.MOST_RUNS,
        )
        if runs is None:
            raise UnknownRowsError(f"too many pieces of {file.path} were deleted before")
        return whole_files.parse_runs(str(runs))

    def _not_known(self, delete: _Delete, why: str) -> None:
        """Never raises."""
        dataset = None
        try:
            dataset = self._dataset(delete)
        except Exception:  # noqa: BLE001 - the JVM has gone, say
            logger.debug("the table of a DELETE is not known", exc_info=True)
        label = "" if dataset is None else str(dataset["name"])
        self._rows.not_known(delete.removal, label, dataset, why)

    def _dataset(self, delete: _Delete) -> dict[str, Any]:
        transaction = delete.transaction
        if transaction is None:  # of a DELETE, which knows its log
            transaction = Transaction("", str(delete.plan.deltaLog().dataPath().toString()), -1)
        return delta_outputs.place_of(delete.plan, transaction)[1]


def _described(table: str, file: RemovedFile) -> Mapping[str, Any]:
    path = delta_log.data_path(table, file.path)
    return {"path": path, **partitions.status(path), "size": file.size}

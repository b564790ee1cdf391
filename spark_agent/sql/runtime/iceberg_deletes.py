"""DELETEs and TRUNCATEs of Iceberg that remove whole files: nobody reads their rows.

Such a statement only says in the table's metadata which files are gone. Once it has ended, Iceberg's own
classes say which snapshot is its own, which files that has removed, and which of their rows were deleted
before. No data is read but files of deletes. Promises that what is not known is published as a query that was
not followed.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from spark_agent.delivery.log import logger
from spark_agent.driver import partitions
from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.py4j_errors import in_short
from spark_agent.sql.runtime.planned_query import PlanningCall
from spark_agent.sql.runtime.removed_rows import Removal, RemovedRows
from spark_agent.sql.table_formats import iceberg_outputs, whole_files
from spark_agent.sql.table_formats.delta_log import RemovedFile
from spark_agent.sql.types import Plan

if TYPE_CHECKING:
    from spark_agent.driver.session import Session

#: The command of one with a condition.
_OF_A_PART = "DeleteFromTableWithFilters"
#: Commands of Spark that remove whole files -> the statement.
STATEMENTS = {"DeleteFromTable": "DELETE", _OF_A_PART: "DELETE", "TruncateTable": "TRUNCATE"}


@dataclass(eq=False)
class _Delete:
    """One that runs. `java` is its IcebergDelete of the JVM."""

    removal: Removal
    java: Any
    label: str = ""
    dataset: dict[str, Any] = field(default_factory=dict)


class IcebergDeletes:
    """Those of one application. They begin in users' threads, and end in the one of `JvmEvents`."""

    def __init__(self, session: Session, catalyst: Catalyst, rows: RemovedRows) -> None:
        self._session, self._catalyst, self._rows = session, catalyst, rows
        self._lock = threading.Lock()
        self._running: dict[int | None, _Delete] = {}  # by the thread of the JVM
        self._open: dict[int, _Delete] = {}  # by their sinks

    def begin(self, command: Plan, kind: str, call: PlanningCall, call_site: str) -> int | None:
        """A statement is about to run. The number by which its end is to be reported; None: not of Iceberg.

        Raises what py4j raises.
        """
        java = self._catalyst.iceberg.delete(command)
        if java is None:
            return None
        removal = self._rows.removal(STATEMENTS[kind], call_site)
        said = json.loads(java.describe())
        _, dataset, label = iceberg_outputs.place_of(command, command.table(), said)
        if kind == _OF_A_PART:
            dataset["replaces_part"] = True
        delete = _Delete(removal, java, label, dataset)
        with self._lock:
            self._running[call.thread] = self._open[removal.sink] = delete
        return removal.sink

    def see(self, call: PlanningCall) -> None:
        """A plan is made in a thread: the statement that ran there before has ended. Never raises."""
        delete = self._running.pop(call.thread, None) if self._running else None
        if delete is not None:
            try:
                delete.java.end()
            except Exception:  # noqa: BLE001 - another Iceberg; its end says what is not known
                logger.debug("the snapshot of a DELETE is not known", exc_info=True)

    def ends(self, number: int, *, is_failed: bool = False) -> bool:
        """Is that the number of one, which has ended? Publishes what it has removed. Never raises."""
        with self._lock:
            delete = self._open.pop(number, None)
        if delete is not None:
            try:
                self._publish(delete)
            except Exception as error:  # noqa: BLE001 - metadata that cannot be read, or another Iceberg
                logger.debug("what a DELETE removed could not be looked up", exc_info=True)
                if not is_failed:
                    why = in_short(error)
                    self._rows.not_known(delete.removal, delete.label, delete.dataset, why)
        return delete is not None

    def end_all(self) -> None:
        """The application ends: what has not ended by now has removed its files, or will not be seen to."""
        for number in list(self._open):
            self.ends(number)

    def _publish(self, delete: _Delete) -> None:
        """Raises UnknownRowsError and what py4j raises."""
        application = self._session.application_id
        text = iceberg_outputs.text_of(
            delete.java.removed(application, whole_files.MOST_VECTORS, whole_files.MOST_RUNS)
        )
        if not text:
            return
        said = json.loads(text)
        files = (
            RemovedFile(
                file["path"], file["size"], file["rows"], file["deleted"] and {"runs": file["deleted"]}
            )
            for file in said["files"]
        )
        removed = whole_files.partitions_of(files, _deleted_before, _described)
        if removed:
            self._rows.publish(delete.removal, delete.label, delete.dataset, said["version"], removed)


def _deleted_before(file: RemovedFile) -> whole_files.Runs:
    return whole_files.parse_runs((file.vector or {})["runs"])


def _described(file: RemovedFile) -> Mapping[str, Any]:
    path = partitions.local_path(file.path)
    return {"path": path, **partitions.status(path), "size": file.size}

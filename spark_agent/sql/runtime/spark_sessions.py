"""Where SparkSessions begin: the first one of an application brings the JVM's part of the agent.

A job of RDDs alone loads two small classes and no more. Where they cannot be had, or where DataFrames are
switched off, queries go on without lineage: the application then has a gap for those that it runs, and a
coarse node for each that Spark reports.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spark_agent.driver.monkeypatch import like
from spark_agent.sql.jvm_gateway import JvmUnavailableError, load
from spark_agent.sql.rerun.asked_queries import AskedQuery
from spark_agent.sql.rerun.replayed_queries import ReplayedQuery
from spark_agent.sql.rerun.rerun import CannotRerunError
from spark_agent.sql.runtime import streaming_queries
from spark_agent.sql.runtime.coarse_queries import CoarseQueries, gap_if_executed
from spark_agent.sql.runtime.queries import Queries

if TYPE_CHECKING:
    from spark_agent.driver.session import Session

#: The listener bus of Spark reports the last queries while the application ends: worth so long a wait.
_END_WAIT_MS = 5_000
_NO_LINEAGE = "DataFrames and SQL have no lineage in this application"
_SWITCHED_OFF = (
    "DataFrames and SQL were switched off (spark.lineage.dataframes=false): queries are not followed"
)


class SparkSessions:
    """The SparkSessions of one application.

    `coarse_queries` publishes queries that are not followed; `dataframes_off` of the session says why.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._queries: Queries | None = None
        self.coarse_queries = CoarseQueries(session)
        self._last: Any = None  # session of the JVM

    def install(self) -> None:
        """Patch SparkSession, so that each one is attached when it is made, and what starts a stream."""
        from pyspark.sql import SparkSession

        original = SparkSession.__init__

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            attach(self._jsparkSession)

        attach = self._attach if self._session.settings.dataframes else self._note_session
        self._session.patches.replace(SparkSession, "__init__", like(original, __init__))
        streaming_queries.install(self._session, self.coarse_queries)
        if self._session.replay is not None:
            from spark_agent.sql.files import replay_paths  # what few jobs need

            replay_paths.install(self._session, self._session.replay)

    def _note_session(self, java_session: Any) -> None:
        """DataFrames are switched off: whether the session was used is looked at in the end."""
        self._last, self._session.scope.dataframes_off = java_session, _SWITCHED_OFF

    def _attach(self, java_session: Any) -> None:
        try:
            with self._lock:
                if self._queries is None and not self._session.scope.dataframes_off:
                    self._session.scope.dataframes_off = _NO_LINEAGE
                    self._queries = Queries(self._session, load(self._session.context), self.coarse_queries)
                    self._session.scope.dataframes_off = ""
            if self._queries is not None:
                self._queries.attach(java_session)
                return
        except JvmUnavailableError as error:
            self._session.scope.dataframes_off = str(error)
        except Exception as error:  # noqa: BLE001 - an agent bug: the user's job goes on
            self._session.scope.dataframes_off = f"{_NO_LINEAGE}: {error!r}"
        self.coarse_queries.watch(java_session, self._session.scope.dataframes_off)

    def leave_out(self, frame: Any) -> None:
        """Capture nothing of queries that read a DataFrame of ours. Never raises."""
        if self._queries is not None:
            with contextlib.suppress(Exception):  # it is captured then
                self._queries.leave_out(frame._jdf.queryExecution().analyzed())

    def flush(self) -> None:
        """Wait, for a bounded time, until what the JVM has reported of ended queries is published."""
        if self._queries is not None:
            self._wait_for_listeners()
            self._queries.flush(_END_WAIT_MS / 1000)

    def wrote(self, path: str) -> bool:
        """Did a query write this file or folder whose records were not captured, and can be run again?"""
        return self._queries is not None and self._queries.reruns.wrote(path)

    def rerun(self, path: str, row: int) -> tuple[int, str]:
        """(node of the records, why they are an upper bound if so) of a row of such a file.

        Raises CannotRerunError.
        """
        if self._queries is None:
            raise CannotRerunError(_NO_LINEAGE)
        return self._queries.reruns.rerun(path, row)

    def replayed(self, sink: int, sources: Sequence[Mapping[str, Any]]) -> ReplayedQuery | None:
        """The query with this output again, of only these rows of its sources; None if it is not remembered.

        Raises CannotRerunError.
        """
        return None if self._queries is None else self._queries.replayed(sink, sources)

    def has_read(self, path: str) -> bool:
        """Did one of the latest queries read this file?"""
        return self._queries is not None and self._queries.asked.has_read(path)

    def missing(self, path: str, row: int) -> list[AskedQuery]:
        """Where a row of such a file ended in each of these queries."""
        return [] if self._queries is None else self._queries.asked.missing(path, row)

    def _wait_for_listeners(self) -> None:
        with contextlib.suppress(Exception):  # a bus that is slow, or a JVM that has gone
            self._session.context._jsc.sc().listenerBus().waitUntilEmpty(_END_WAIT_MS)

    def end(self) -> None:
        """Publish what the JVM still reports. Never raises."""
        if self._queries is not None or self._session.scope.dataframes_off:
            self._wait_for_listeners()
        if self._queries is not None:
            self._queries.end()
        self.coarse_queries.end()
        if self._last is not None:
            gap_if_executed(self._session, self._last, self._session.scope.dataframes_off)

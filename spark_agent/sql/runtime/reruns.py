"""Runs the query of a file again for one row of it, with all its records captured (the level lazy).

`rerun.rerun` knows the queries and makes the DataFrame to run. This module runs it in the session, and
recognises it when Spark's planner comes with its plan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spark_agent import contract
from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.rerun.rerun import LazyQueries, Rerun
from spark_agent.sql.types import Plan


class Reruns:
    """Those of one application. `leave_out` keeps the queries of a plan out of the lineage of the job."""

    def __init__(
        self,
        catalyst: Catalyst,
        lazy_queries: LazyQueries,
        emit: Callable[..., None],
        leave_out: Callable[[Plan], None],
    ) -> None:
        self._catalyst, self._lazy_queries = catalyst, lazy_queries
        self._emit, self._leave_out = emit, leave_out
        self._running: dict[tuple[int, ...], Rerun] = {}  # by the columns of their plans

    def take(self, query: Plan) -> Rerun | None:
        """The rerun that a plan is of, once."""
        return self._running.pop(self._catalyst.column_ids(query), None) if self._running else None

    def wrote(self, path: str) -> bool:
        """Can the query that wrote a file be run again for a row of it?"""
        return self._lazy_queries.writer_of(path) is not None

    def rerun(self, path: str, row: int) -> tuple[int, str]:
        """(node of the records of a row, why they are an upper bound if so). Raises CannotRerunError."""
        rerun = self._lazy_queries.rerun(path, row, self._run_captured, self._leave_out_frame)
        assert rerun.node is not None
        return rerun.node.number, rerun.node.reason

    def _run_captured(self, frame: Any, rerun: Rerun) -> int:
        columns, rows = self._catalyst.column_ids(frame._jdf.queryExecution().analyzed()), 0
        self._running[columns] = rerun
        try:
            # All columns of them: of a group without its aggregates, Spark would leave out joins, too.
            rows = int(frame._jdf.queryExecution().toRdd().count())
        finally:
            self._running.pop(columns, None)
            if rerun.node is not None:
                rerun.end(rows)
                self._emit(contract.NODE_REGISTERED, **rerun.node.event())
        return rows

    def _leave_out_frame(self, frame: Any) -> None:
        self._leave_out(frame._jdf.queryExecution().analyzed())

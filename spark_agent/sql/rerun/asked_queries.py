"""The latest queries of a session, and where a row of what they read ended (`trace(FILE).missing`).

At capture only references are kept: the plan, as long as memory suffices, and the files that it reads. When a
row is asked for, the files must be the same still. What is asked is no part of the job.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.files.input_state import Inputs, Scan, UncheckedInputError, listing
from spark_agent.sql.rerun.input_row import InputRows
from spark_agent.sql.rerun.missing_rows import CannotFollowError, RowEnd, RowWalk
from spark_agent.sql.rerun.plan_frames import Frames
from spark_agent.sql.rerun.rerunnable_plan import NotRepeatableError, repeatable
from spark_agent.sql.rerun.row_conditions import RowError
from spark_agent.sql.rewrite.plan_nodes import PlanNode
from spark_agent.sql.types import Plan

MOST_QUERIES = 64


@dataclass(frozen=True)
class AskedQuery:
    """A query that read a file, and where a row of it ended; None: it cannot be said, see `reason`.

    `operator` is the node at which it ended, if that is one of the graph's. A file that a query reads several
    times has an end for each.
    """

    sink: PlanNode
    end: RowEnd | None
    operator: PlanNode | None = None
    reason: str = ""


class AskedQueries:
    """Those of one application. Thread-safe at capture."""

    def __init__(self, catalyst: Catalyst, jvm: Any, leave_out: Callable[[Any], None]) -> None:
        self._catalyst, self._inputs = catalyst, Inputs(catalyst, jvm)
        self._frames = Frames(catalyst, jvm)
        self._rows = InputRows(catalyst, self._frames, leave_out)
        self._lock = threading.Lock()
        self._queries: deque[tuple[Any, Sequence[PlanNode]]] = deque(maxlen=MOST_QUERIES)

    def remember(self, query: Plan, nodes: Sequence[PlanNode]) -> None:
        """`nodes` are those of the query. Never raises: the query does not need it."""
        if nodes[-1].kind != "sink":
            return
        with contextlib.suppress(Exception):
            remembered = self._catalyst.remembered(query)
            with self._lock:
                self._queries.append((remembered, nodes))

    def is_asked(self, plan: Plan) -> bool:
        """Is a plan one of ours?"""
        return self._frames.is_ours(plan)

    def has_read(self, path: str) -> bool:
        return any(self._reads(remembered, path) for remembered, _ in self._remembered())

    def query(self, sink: int) -> Plan | None:
        """The query whose output has this number, to be run again; None if it is not remembered.

        Raises NotRepeatableError and UncheckedInputError.
        """
        for remembered, nodes in self._remembered():
            if nodes[-1].number == sink:
                return self._query(remembered)
        return None

    def missing(self, path: str, row: int) -> list[AskedQuery]:
        """Of each query that read the file, the latest first. Raises RowError where there is no such row."""
        asked = []
        for remembered, nodes in self._remembered():
            if self._reads(remembered, path):
                asked += self._asked(remembered, nodes, path, row)
        return asked

    def _remembered(self) -> list[tuple[Any, Sequence[PlanNode]]]:
        with self._lock:
            return [*reversed(self._queries)]

    @staticmethod
    def _reads(remembered: Any, path: str) -> bool:
        return any(path in listing(files) for files in remembered.files())

    def _asked(self, remembered: Any, nodes: Sequence[PlanNode], path: str, row: int) -> list[AskedQuery]:
        sink = nodes[-1]
        try:
            query = self._query(remembered)
            ends = [self._end(query, scan, path, row) for scan in self._scans(query, path)]
        except (NotRepeatableError, UncheckedInputError, CannotFollowError) as error:
            return [AskedQuery(sink, None, reason=f"the query cannot be asked again: {error}")]
        if not ends:
            return [
                AskedQuery(
                    sink, None, reason="the file is read in a subquery, which gives one value of many rows"
                )
            ]
        return [AskedQuery(sink, end, _node_of(end, nodes), "; ".join(end.doubts)) for end in ends]

    def _query(self, remembered: Any) -> Plan:
        """Raises NotRepeatableError and UncheckedInputError."""
        if remembered.problem():
            raise NotRepeatableError(str(remembered.problem()))
        plan = remembered.plan()
        if plan is None:
            raise NotRepeatableError("its plan was forgotten, since memory ran short")
        pairs = zip(remembered.relations(), remembered.files(), strict=True)
        scans = [Scan(relation.location(), relation.options(), files) for relation, files in pairs]
        changed = self._inputs.change(scans, self._frames.spark()._jsparkSession)
        if changed:
            raise NotRepeatableError(f"it would not give the same rows again, since {changed}")
        return repeatable(self._catalyst, plan)

    def _scans(self, query: Plan, path: str) -> list[Plan]:
        return [
            leaf
            for leaf in self._catalyst.items(query.collectLeaves())
            if self._catalyst.kind(leaf) == "LogicalRelation"
            and path in listing(leaf.relation().location().allFiles())
        ]

    def _end(self, query: Plan, scan: Plan, path: str, row: int) -> RowEnd:
        try:
            alone = self._rows.plan(query, scan, path, row)
        except RowError as error:
            raise CannotFollowError(str(error)) from None
        return RowWalk(self._catalyst, self._frames.take, scan, alone).end(query)


def _node_of(end: RowEnd, nodes: Sequence[PlanNode]) -> PlanNode | None:
    """The node of the graph that is this operator, if one only may be."""
    alike = [node for node in nodes if (node.name, node.description) == (end.name, end.description)]
    return alike[0] if len(alike) == 1 else None

"""What is listed of a trace: a page of each node, or of one in the order of a column; and remarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from time import monotonic

from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import Remark
from lineage_service.queries import TraceQuery
from lineage_service.tracing.columns.application import OpenedApplication
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.query.reached_rows import ReachedRows
from lineage_service.tracing.query.remarks import LEAST_ROWS
from lineage_service.tracing.query.row_order import Place
from lineage_service.tracing.walk.local_engine import TraceWalk
from lineage_service.tracing.walk.result import Reached, Walked
from lineage_service.tracing.walk.walk_cache import LocalTrace
from spark_agent import contract

__all__ = ["TracePage"]

Opened = OpenedApplication[Snapshot]
#: The part of a query's time that remarks may take.
_REMARK_SHARE = 0.2


class TracePage:
    """Of one query over a trace that was walked. `only` is a node id."""

    def __init__(
        self,
        locations: RecordLocations,
        trace: LocalTrace,
        query: TraceQuery,
        only: str | None,
        time_budget_s: float,
    ) -> None:
        """Raises InvalidQueryError."""
        if query.sort is not None and only is None:
            raise InvalidQueryError("sort needs only: the operation whose rows are to be sorted")
        if query.desc and query.sort is None:
            raise InvalidQueryError("desc needs sort: the column whose largest values are to come first")
        self._locations, self._trace, self._query, self._only = locations, trace, query, only
        self._remarks_until = monotonic() + _REMARK_SHARE * time_budget_s

    def page(self, after: Mapping[str, Place] | None, check: Check) -> list[tuple[Opened, Walked]]:
        """One page, application by application. Raises InvalidQueryError."""
        query, only = self._query, self._only
        if query.sort is None or only is None:
            return self._trace.page(query.limit, after, check, only)
        pages = self._trace.page(1, None, check, only)
        last = None if after is None else after.get(only)
        is_first = after is None
        return [
            (
                opened,
                replace(
                    walked,
                    reached=tuple(
                        self._sorted(opened, reached, last, check, is_first=is_first)
                        if reached.positions
                        else reached
                        for reached in walked.reached
                    ),
                ),
            )
            for opened, walked in pages
        ]

    def _sorted(
        self, opened: Opened, reached: Reached, last: Place | None, check: Check, *, is_first: bool
    ) -> Reached:
        """The page of the one node that is listed, in the order of the column."""
        if not is_first and last is None:
            return replace(reached, positions=(), has_more=False)
        places = self._ordered(opened, reached.node, check)
        first = 0
        if last is not None:
            try:
                first = places.index(last) + 1
            except ValueError:
                raise InvalidQueryError("the cursor names a record that the trace does not reach") from None
        chosen = places[first : first + self._query.limit]
        positions = self._walk(opened).positions(reached.node, chosen)
        return replace(reached, positions=positions, has_more=first + len(chosen) < len(places))

    def _ordered(self, opened: Opened, number: int, check: Check) -> list[Place]:
        column, desc, orders = self._query.sort or "", self._query.desc, self._trace.orders
        key = contract.node_id(opened.application.application_id, number), column, desc
        if key not in orders:
            order = self._rows(opened, opened.graph.topology.nodes[number]).ordered(column, check, desc=desc)
            orders.clear()  # one is kept: pages follow each other
            orders[key] = order
        return orders[key]

    def remarks(
        self, opened: Opened, node: TopologyNode, check: Check
    ) -> tuple[tuple[Remark, ...] | None, int | None]:
        """(what stands out of all rows of a node, of how many it is known); None where it is not asked for.

        Remarks are on the ends of a trace, once: with its first page.
        """
        query = self._query
        end = "source" if query.direction == "backward" else "sink"
        if not query.remarks or query.cursor is not None or node.kind != end:
            return None, None
        if self._only not in (None, contract.node_id(opened.application.application_id, node.number)):
            return None, None
        arrived = self._walk(opened).by_partition(node.number)
        if not self._locations.has_files(node, arrived):
            return None, None
        if sum(map(len, arrived.values())) < LEAST_ROWS:
            return (), sum(map(len, arrived.values()))
        return ReachedRows(self._locations, opened, node, arrived).remarks(check, self._remarks_until)

    def _rows(self, opened: Opened, node: TopologyNode) -> ReachedRows:
        return ReachedRows(self._locations, opened, node, self._walk(opened).by_partition(node.number))

    def _walk(self, opened: Opened) -> TraceWalk:
        walk = self._trace.segments[opened.application.application_id][1]
        assert isinstance(walk, TraceWalk)
        return walk

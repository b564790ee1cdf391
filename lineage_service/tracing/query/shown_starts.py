"""The records that a query begins at, as people see them."""

from __future__ import annotations

from collections.abc import Sequence

from lineage_service.lineage import TraceStart
from lineage_service.queries import TraceQuery
from lineage_service.tracing.columns.store_cursor import StoreCursor
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.query.open_applications import Opened
from lineage_service.tracing.query.requested_columns import RequestedColumns
from lineage_service.tracing.query.shown_records import Show
from lineage_service.tracing.query.trace_results import start_of
from lineage_service.tracing.walk.result import Position

__all__ = ["shown_starts"]


def shown_starts(
    show: Show,
    opened: Opened,
    cursor: StoreCursor,
    starts: Sequence[Position],
    query: TraceQuery,
    check: Check,
    columns: RequestedColumns,
) -> list[TraceStart]:
    """Node by node, at most `query.limit` records of each."""
    by_node: dict[int, dict[tuple[int, int], Position]] = {}
    for start in starts:
        by_node.setdefault(start.node, {})[start.partition, start.offset] = start
    shown = []
    for number, positions in by_node.items():
        node = opened.graph.topology.nodes[number]
        listed = [positions[place] for place in sorted(positions)[: query.limit]]
        records = show(
            opened, cursor, node, listed, values=query.values, check=check, columns=columns.of(node)
        )
        shown.append(start_of(opened.application, node, len(positions), records))
    return shown

"""What commands read and write: the flow store as `Queries`, and traces into the graph.

What they need is imported when it is opened: a command that only prints its help needs none of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lineage_service.lineage import Materialized
    from lineage_service.queries import Queries, TraceQuery
    from lineage_service.settings import Settings
    from lineage_service.tracing.query.service import LineageQueries


def open_queries(settings: Settings, *, makes_store: bool = True, cache_bytes: int | None = None) -> Queries:
    """The lineage of the flow store that `settings` names.

    Where there is none, one is created, or NoStoreError is raised without `makes_store`.
    """
    from lineage_service.store.flow_store import existing_store, open_store
    from lineage_service.tracing.query.service import LineageQueries

    store = open_store(settings) if makes_store else existing_store(settings)
    return LineageQueries(store, time_budget_s=settings.trace_seconds, cache_bytes=cache_bytes)


def open_lineage(settings: Settings) -> LineageQueries:
    """The same of a flow store that is there, with the files of the jobs. Raises NoStoreError."""
    from lineage_service.store.flow_store import existing_store
    from lineage_service.tracing.query.service import LineageQueries

    return LineageQueries(existing_store(settings), time_budget_s=settings.trace_seconds)


def open_materializer(settings: Settings) -> Callable[[str, TraceQuery], Materialized] | None:
    """Puts a trace into Neo4j, or None when no Neo4j is configured."""
    from lineage_service.graph.neo4j_store import from_settings
    from lineage_service.graph_export.trace_writer import Materializer

    graph = from_settings(settings)
    return None if graph is None else Materializer(open_queries(settings), graph, settings.graph_max_records)

"""Structured Streaming queries: coarse nodes when they start, for nothing of them is followed.

A stream has a node with its name and its sink, one for each source, the reason why no more is known, a gap.
What `foreachBatch` runs are queries like any others, and are followed from the rows of the batch on.
Whatever fails here leaves the stream as PySpark made it, and a gap without a node.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spark_agent.delivery.log import logger
from spark_agent.driver.call_sites import call_site
from spark_agent.driver.monkeypatch import like
from spark_agent.sql import tables
from spark_agent.sql.plan_schemas import schema_of_plan
from spark_agent.sql.runtime.coarse_queries import read_by
from spark_agent.sql.tables import Endpoint

if TYPE_CHECKING:
    from spark_agent.driver.session import Session
    from spark_agent.sql.runtime.coarse_queries import CoarseQueries

#: How a sink of files shows itself.
_FILES = re.compile(r"\w*Sink\[(.*)\]", re.DOTALL)
_NAMES = {"ForeachBatchSink": "foreachBatch", "ForeachWriterTable": "foreach", "MemorySink": "memory"}


def install(session: Session, coarse_queries: CoarseQueries) -> None:
    """Patch what starts a stream."""
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    replace = session.patches.replace
    replace(DataStreamWriter, "format", _format(DataStreamWriter.format))
    for name in ("start", "toTable"):
        replace(DataStreamWriter, name, _start(session, coarse_queries, getattr(DataStreamWriter, name)))


def _format(original: Callable[..., Any]) -> Callable[..., Any]:
    def format(self: Any, source: str) -> Any:
        self._lineage_format = source
        return original(self, source)

    return like(original, format)


def _start(
    session: Session, coarse_queries: CoarseQueries, original: Callable[..., Any]
) -> Callable[..., Any]:
    def start(self: Any, *args: Any, **kwargs: Any) -> Any:
        query = original(self, *args, **kwargs)
        format = kwargs.get("format") or getattr(self, "_lineage_format", "")
        table = str((args or tuple(kwargs.values()))[0]) if original.__name__ == "toTable" else ""
        _publish(session, coarse_queries, query, str(format or ""), table)
        return query

    return like(original, start)


def _publish(session: Session, coarse_queries: CoarseQueries, query: Any, format: str, table: str) -> None:
    reason = "a streaming query is not followed"
    try:
        name = str(query.name or query.id)
        reason = f"the streaming query {name} is not followed: Structured Streaming is not covered"
        sources, sink = _endpoints(query, format)
        described = " ".join(filter(None, (table or sink.description, f"({sink.name})")))
        coarse_queries.publish(
            Endpoint(f"stream {name}", described, sink.dataset, sink.schema),
            sources,
            reason,
            call_site=call_site(),
        )
    except Exception as error:  # noqa: BLE001 - an agent bug: the user's stream goes on
        logger.debug("a stream is not in the graph: %r", error)
        session.events.gap(reason)


def _endpoints(query: Any, format: str) -> tuple[list[Endpoint], Endpoint]:
    """What a stream reads, and where it writes."""
    execution = query._jsq.streamingQuery()
    plan = execution.analyzedPlan()
    leaves = plan.collectLeaves()
    sources = [read_by(leaves.apply(index)) for index in range(leaves.size())]
    return sources, replace(_sink(execution.sink(), format), schema=schema_of_plan(plan))


def _sink(sink: Any, format: str) -> Endpoint:
    shown, kind = str(sink.toString()), str(sink.getClass().getSimpleName()).rstrip("$")
    files = _FILES.fullmatch(shown)
    if files is not None and files[1]:
        return tables.of_files(format or "files", files[1])
    return Endpoint(_NAMES.get(kind, format or kind))

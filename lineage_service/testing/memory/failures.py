"""Traces of failures, in memory: they begin at the record that a failure names."""

from __future__ import annotations

from dataclasses import replace

from lineage_service.errors import InvalidQueryError, NotFoundError
from lineage_service.queries import TraceQuery
from lineage_service.testing.memory.lineages import MemoryLineage

__all__ = ["with_record_of_failure"]


def with_record_of_failure(lineage: MemoryLineage, query: TraceQuery) -> TraceQuery:
    """The query with a record in place of a failure. Raises NotFoundError, InvalidQueryError."""
    if query.failure is None:
        return query
    if query.direction != "backward":
        raise InvalidQueryError("a record that made a task fail went into nothing: trace it backward")
    for failure in lineage.failures:
        if failure.failure == query.failure and failure.record is not None:
            record = failure.record
            return replace(query, failure=None, node=record.node_id, record=record.record_id)
    application_id = lineage.application.application_id
    raise NotFoundError(f"application {application_id} has no failure {query.failure} with a record")

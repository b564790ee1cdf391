"""Suspects, contrasts and slow records, in memory: those that a lineage was given."""

from __future__ import annotations

from lineage_service.lineage import Contrast, Slow, Suspects
from lineage_service.queries import ContrastQuery, SlowQuery, SuspectsQuery
from lineage_service.testing.memory.lineages import MemoryLineage

__all__ = ["contrast_of", "slow_of", "suspects_of"]


def suspects_of(lineage: MemoryLineage, query: SuspectsQuery) -> Suspects:
    application = lineage.application
    return Suspects(
        application_id=application.application_id,
        name=application.name,
        method=query.method,
        suspects=lineage.suspects[: query.limit],
        total=len(lineage.suspects),
        tasks=len(lineage.graph.nodes),
        tests=len(lineage.suspects),
        threshold=None if query.method == "newt" else 1.0,
        bad=len(query.bad),
        good=len(query.good),
        earlier=0,
        complete=application.complete,
        how=(),
    )


def contrast_of(lineage: MemoryLineage, query: ContrastQuery) -> Contrast:
    application = lineage.application
    return Contrast(
        application_id=application.application_id,
        name=application.name,
        properties=lineage.properties[: query.limit],
        compared=len(lineage.properties),
        complete=application.complete,
        how=(),
    )


def slow_of(lineage: MemoryLineage, query: SlowQuery) -> Slow:
    """Without sums."""
    application = lineage.application
    return Slow(
        application_id=application.application_id,
        name=application.name,
        records=lineage.slow[: query.limit],
        total=len(lineage.slow),
        inputs=(),
        operations=(),
        partitions=(),
        complete=application.complete,
        how="",
    )

"""The explanation of a record beside that of the same record in another run, in memory."""

from __future__ import annotations

from dataclasses import replace

from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import ComparedExplanation, Explanation
from lineage_service.queries import ExplanationQuery
from lineage_service.testing.memory.explanations import explanation_of
from lineage_service.testing.memory.lineages import LineageIndex

__all__ = ["compared_with"]


def compared_with(
    explanation: Explanation, other: LineageIndex, query: ExplanationQuery
) -> ComparedExplanation:
    """By the names of sources and the texts of rows. Raises InvalidQueryError."""
    if other.lineage.application.application_id == explanation.application_id:
        raise InvalidQueryError("a run is not compared with itself: name another application")
    asked = replace(query, starts=query.compare_starts or query.starts, compare=None, limit=10_000)
    of_other = explanation_of(other, asked)
    texts = [{(row.name, row.text): row for row in one.rows} for one in (explanation, of_other)]
    gone = tuple(row for key, row in texts[0].items() if key not in texts[1])
    new = tuple(row for key, row in texts[1].items() if key not in texts[0])
    return ComparedExplanation(
        application_id=of_other.application_id,
        name=of_other.name,
        starts=of_other.starts,
        total=of_other.total,
        same=len(texts[0]) - len(gone),
        gone=gone[: query.limit],
        gone_total=len(gone),
        new=new[: query.limit],
        new_total=len(new),
        exact=explanation.unchecked().kind == of_other.unchecked().kind == "concise",
        complete=explanation.complete and of_other.complete,
        reasons=(),
    )

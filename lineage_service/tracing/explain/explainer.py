"""Explanations of records of one application, from the flow store alone. Nothing runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.explain.answers import explanations
from lineage_service.tracing.explain.explanation import Explanation
from lineage_service.tracing.explain.walk import ExplanationWalk
from lineage_service.tracing.walk.frontiers import TooManyError
from lineage_service.tracing.walk.result import Position

__all__ = ["explain", "explain_each"]


def explain(snapshot: Snapshot, starts: Sequence[Position], check: Callable[[], None]) -> Explanation:
    """One explanation of all these records. `check` is called now and then, and ends it by what it raises."""
    [explanation] = _explained(snapshot, [starts], check)
    return explanation


def explain_each(
    snapshot: Snapshot, groups: Sequence[Sequence[Position]], check: Callable[[], None]
) -> list[Explanation]:
    """An explanation of each group, in one walk while that is small. Those of several have no rules."""
    if len(groups) > 1:
        try:
            return _explained(snapshot, groups, check)
        except TooManyError:
            pass
    return [explain(snapshot, starts, check) for starts in groups]


def _explained(
    snapshot: Snapshot, groups: Sequence[Sequence[Position]], check: Callable[[], None]
) -> list[Explanation]:
    walk = ExplanationWalk(snapshot, groups)
    walk.advance(check)
    return explanations(walk, {start.node for starts in groups for start in starts})

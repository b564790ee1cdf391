"""Adds rows until an output comes out again: those that repair knows of, then ever larger parts of the rest.

What nobody knows a reason for is found in the rows of the plain trace: a half of them, three quarters, all.
Last comes the whole input. So a deterministic job gives the output again in a few more runs, whatever it
does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lineage_service.lineage import AskedRecord
from lineage_service.replays.explain.chosen_rows import chosen_rows
from lineage_service.replays.joined_rows import joined, rows_of, without_places
from lineage_service.replays.replay_runs import Added, Repair
from lineage_service.replays.sift.candidate_sets import SourceRows
from lineage_service.replays.specification import Plan, Source, with_places

__all__ = ["GrowingRepair"]

#: Of fewer rows that are left, no half is tried; and how often a half is.
_FEW, _MOST_HALVES = 8, 2


class GrowingRepair:
    """`Repair` of one application. `bound` are the sources of a plain trace, with all rows that took part."""

    def __init__(self, repair: Repair, original: str, bound: Sequence[Source], texts: SourceRows) -> None:
        self._repair, self._original, self._texts = repair, original, texts
        self._bound = [without_places(source) for source in bound]
        self._halves, self._why = 0, "the command failed on these rows"

    def more(self, plan: Plan, replayed: str | None, missing: Sequence[AskedRecord]) -> Added:
        """See `replay_runs.Repair`."""
        if replayed is not None and not self._halves:
            added = self._repair.more(plan, replayed, missing)
            if added.plan is not None:
                return added
            self._why = added.why
        left = sorted(rows_of(self._bound) - rows_of(plan.restricted))
        if not left or self._halves > _MOST_HALVES:
            whole = replace(plan, mode="all", sources=(), strategy="watch")
            return Added(whole, f"all rows of the inputs were read: {self._why}")
        is_half = len(left) > _FEW and self._halves < _MOST_HALVES
        self._halves += 1
        rows = left[::2] if is_half else left
        sources = joined(plan.sources, chosen_rows(self._original, self._bound, rows, self._texts))
        placed = with_places(self._original, sources, self._texts)
        part = "half of the other rows" if is_half else "all other rows"
        why = f"{len(rows):,} added, {part} of the trace: {self._why}"
        return Added(replace(plan, sources=placed, strategy="repair"), why)

    def failing(self, replayed: str, records: Sequence[tuple[int, int, int]]) -> dict[str, Any] | str:
        return self._repair.failing(replayed, records)

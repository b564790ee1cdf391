"""Sums over the answers about jobs, cheap enough to be asked for every few seconds.

The answers of commands count as those of this process do: all of them are rows of the table of waves. The
rows of a job are read again only when some came or went, without the evidence in them. At most MOST_JOBS jobs
are read, those that were asked about last. One look takes about LOOK_SECONDS, and the next one goes on with
the rest. Threads may look at the same time.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from lineage_service.lineage import ModelInCharge, TriggerPhase
from lineage_service.lineage.trigger_totals import DECISION_SECONDS, JobTotals, TriggerTotals
from lineage_service.triggering.learning.model_in_charge import in_charge
from lineage_service.triggering.waves.savings import Durations, savings_of
from lineage_service.triggering.waves.wave_history import WaveHistory

__all__ = ["MOST_JOBS", "WaveTotals", "totals_of"]

MOST_JOBS = 200
LOOK_SECONDS = 2.0
#: What was learned stands with the last answer, or with one of so many before it.
_LEARNED = 20


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """What the sums are made of: columns of the table, of the same names."""

    job: str
    number: int
    decision: str
    reason: str
    phase: str
    application_id: str | None
    bound: float | None
    confidence: float | None
    probability: float | None
    compliance: float | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class LearnedRow:
    """What was learned until an answer, as `Wave` has it."""

    number: int
    bound: float | None
    learned: str | None


class WaveTotals:
    """Of one flow store."""

    def __init__(
        self, history: WaveHistory, durations: Durations, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._history, self._durations, self._now = history, durations, now
        self._lock = Lock()
        self._totals: dict[str, tuple[int, JobTotals]] = {}  # by key, with the version of its files

    def look(self) -> TriggerTotals:
        """Raises StoreUnavailableError."""
        with self._lock:
            versions = self._history.versions(MOST_JOBS)
            until = self._now() + LOOK_SECONDS
            totals: dict[str, tuple[int, JobTotals]] = {}
            for key, version in versions.items():
                cached = self._totals.get(key)
                if cached is not None and cached[0] == version:
                    totals[key] = cached
                elif self._now() < until and (fresh := self._read(key, until)) is not None:
                    totals[key] = version, fresh
            self._totals = totals
            jobs = sorted((job for _, job in totals.values()), key=lambda job: job.job)
            return TriggerTotals(jobs=tuple(jobs), unread=self._history.parts() - len(totals))

    def _read(self, key: str, until: float) -> JobTotals | None:
        """None where the time is up before all of it is read."""
        names = AnswerRow.__dataclass_fields__.keys()
        rows = [AnswerRow(**row) for row in self._history.columns(key, list(names))]
        seconds = self._durations.within(rows, lambda: self._now() < until)
        if seconds is None or not rows:
            return None
        return totals_of(rows, seconds, self._in_charge(key, rows))

    def _in_charge(self, key: str, rows: Sequence[AnswerRow]) -> ModelInCharge | None:
        last = max(rows, key=lambda row: row.number)
        if last.bound is None:
            return None
        learned = [
            LearnedRow(**row)
            for row in self._history.columns(key, ("number", "bound", "learned"), last.number - _LEARNED)
        ]
        return in_charge(learned, self._history.retrained(last.job))


def totals_of(
    rows: Sequence[AnswerRow], seconds: Mapping[str, float], model: ModelInCharge | None = None
) -> JobTotals:
    """Of the answers of a job, in any order; `seconds` are those of its executions, by application."""
    latest_first = sorted(rows, key=lambda row: -row.number)
    bound = latest_first[0].bound
    modelled = [row for row in latest_first if bound is not None and row.bound == bound]
    tested = next((row for row in modelled if row.compliance is not None), None)
    savings = savings_of(rows, seconds)
    took = Counter(bisect_left(DECISION_SECONDS, row.seconds) for row in rows if row.seconds is not None)
    return JobTotals(
        job=latest_first[0].job,
        decisions=Counter((row.decision, row.reason) for row in rows),
        phase=_phase(modelled),
        probability=next((row.probability for row in modelled if row.probability is not None), None),
        tested_compliance=None if tested is None else tested.compliance,
        in_charge=model,
        confidence=modelled[0].confidence if modelled else None,
        seconds=tuple(took[at] for at in range(len(DECISION_SECONDS) + 1)),
        saved_seconds=savings.saved_seconds,
        spent_seconds=savings.spent_seconds,
    )


def _phase(modelled: Sequence[Any]) -> TriggerPhase:
    """That of the last answer that rests on a model: certain ones stand between those."""
    for row in modelled:
        if row.phase == "training":
            return "training"
        if row.phase == "application":
            return "application"
    return "certain"

"""A job in the product's hands, wave after wave: its phases decide, and learn from what was executed only.

The one shortcut: a forest is asked about all pairs of later waves at once. Its answers are those that it
would give one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lineage_service.triggering.learning import phases
from lineage_service.triggering.learning.closed_loop import Grid, Play
from lineage_service.triggering.learning.compliance import Compliance
from lineage_service.triggering.learning.drift import InCharge
from lineage_service.triggering.learning.phases import APPLICATION, TRAINING, Policy, Progress
from lineage_service.triggering.learning.training_pairs import TrainingPairs
from perf.trigger.policies import Outcome, outcome
from perf.trigger.waves import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What came of it. `began`: the first wave that a forest decided; `threshold`, `tested`: of the first
    test, the latter its compliance; `returns`: waves at which the job went back to training, and why;
    `promotions`: the last waves of its trainings; `audits`: what the product itself knows at the end.
    """

    outcome: Outcome
    began: int | None
    threshold: float | None
    tested: Compliance | None
    returns: Sequence[tuple[int, str]]
    promotions: Sequence[int]
    audits: InCharge
    reason: str


class _Answers:
    """Probabilities and unlike features of all pairs, by the lesson of now."""

    def __init__(
        self, pairs: TrainingPairs, progress: Progress, policy: Policy, executed: TrainingPairs
    ) -> None:
        lesson = phases.lesson(progress, executed, policy)
        later = pairs.where(pairs.waves > progress.fitted)
        self._probabilities = Grid(later, lesson.forest.probability(later.features), policy.horizon)
        self._expected = Grid(later, lesson.errors.expected(later.features), policy.horizon)
        self._features = {
            pair: row
            for row, pair in enumerate(zip(later.references.tolist(), later.waves.tolist(), strict=True))
        }
        self._later, self._lesson = later, lesson

    def of(self, reference: int, wave: int) -> tuple[float, str, float]:
        row = self._later.features[self._features[reference, wave]]
        return (
            self._probabilities.at(reference, wave),
            self._lesson.unlike(row),
            self._expected.at(reference, wave),
        )


def charge(job: Job, policy: Policy, training: int) -> Charge:
    """`training`: waves of the first training; from then on the outcome is counted."""
    policy = replace(policy, training=training)
    errors = Grid(job.pairs, job.pairs.errors, policy.horizon)
    progress, executed = Progress(), [0]
    runs, seen = np.ones(job.waves, bool), np.zeros(job.waves)
    returns: list[tuple[int, str]] = []
    promotions: list[int] = []
    began, tested, threshold, answers, fitted = None, None, None, None, -1
    for wave in range(1, job.waves):
        age = wave - executed[-1]
        near = age <= policy.horizon
        probability, unlike, expected = None, "", None
        if progress.phase == APPLICATION and near:
            if answers is None or fitted != progress.fitted:
                answers, fitted = (
                    _Answers(job.pairs, progress, policy, job.pairs.among(executed)),
                    progress.fitted,
                )
            probability, unlike, expected = answers.of(executed[-1], wave)
        verdict = phases.verdict(
            progress,
            policy,
            job=job.step,
            wave=str(wave),
            age=age,
            probability=probability,
            unlike=unlike,
            expected=expected,
        )
        runs[wave] = verdict.run
        error = errors.at(executed[-1], wave) if near else np.nan
        if not verdict.run:
            seen[wave], progress = error, phases.skipped(progress)
            continue
        executed.append(wave)
        before = progress
        progress = phases.executed(progress, policy, verdict, wave=wave, error=error)
        if phases.is_test_due(progress, policy):
            progress = phases.promoted(progress, policy, job.pairs.among(executed), wave)
        if before.phase == TRAINING and progress.phase == APPLICATION:
            answers = None
            promotions.append(wave)
            if began is None:
                began, threshold = wave + 1, progress.threshold
                tested = progress.compliance
        elif before.phase == APPLICATION and progress.phase == TRAINING:
            returns.append((wave, progress.reason))
            policy = replace(policy, training=Policy(bound=policy.bound).training)
    counted = Play(runs[training:], seen[training:], np.full(job.waves - training, np.nan))
    return Charge(
        outcome=outcome("ours", counted, policy.bound),
        began=began,
        threshold=threshold,
        tested=tested,
        returns=returns,
        promotions=promotions,
        audits=progress.looks.in_charge(),
        reason=progress.reason,
    )

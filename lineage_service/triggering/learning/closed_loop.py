"""Which threshold keeps the bound when the forest is in charge: tested on later waves, decision by decision.

Cross-validation does not say. A wrong skip leads to ages and distances that no chain of right decisions
has, and shuffled folds leak between neighbouring waves. So a forest sees only waves before those that it
decides here:

1. After the first third of the training, it is fitted anew at the beginning of each of `STRETCHES`
   stretches.
2. The other two thirds are played: where P(error > bound) reaches the threshold, or the age the horizon,
   the job "runs"; else it is "skipped", and the true error is looked at, which training knows of each
   pair.
3. A play begins with an execution some waves before, and the worst of several beginnings counts.
4. Thresholds are tried from the most careful up, while the exact lower bound of the compliance is at
   least the wanted confidence. In it, waves above the bound in a row count as one. Of the thresholds
   before the first that fails, the one with the fewest runs is taken. Testing in a fixed order needs no
   correction for many tests.

None passes: no threshold, and the job runs always. So it does if what passes skips no more waves than may be
above the bound: then each skip might be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lineage_service.triggering.changes.changed_elements import Flags, Numbers
from lineage_service.triggering.learning.compliance import Compliance, lower_bound
from lineage_service.triggering.learning.forest import Forest, RandomForest
from lineage_service.triggering.learning.training_pairs import TrainingPairs

THRESHOLDS = (*(round(0.02 * step, 2) for step in range(1, 41)),)
STRETCHES = 4
#: Waves since an execution when a play begins.
BEGINNINGS = (1, 2, 4, 8)

Fit = Callable[[Numbers, Flags, int], Forest]


@dataclass(frozen=True, slots=True)
class Play:
    """What came of deciding so many waves: which were `runs`, the `errors` that readers of the output met (0
    after a run), and those that runs `prevented` (NaN where not known, or where none was).
    """

    runs: Flags
    errors: Numbers
    prevented: Numbers

    def compliance(self, bound: float) -> Compliance:
        return Compliance(int((self.errors <= bound).sum()), len(self.errors))

    def independent(self, bound: float) -> Compliance:
        """The same, where waves above the bound in a row count as one, and all others as fewer accordingly.

        One wrong skip is often followed by more. Taken for independent, these would promise too much.
        """
        above = self.errors > bound
        rows = int((above & ~np.append(False, above[:-1])).sum())
        waves = len(above) * rows // int(above.sum()) if rows else len(above)
        return Compliance(waves - rows, waves)

    @property
    def share(self) -> float:
        """Runs of waves."""
        return float(self.runs.mean()) if len(self.runs) else 1.0


@dataclass(frozen=True, slots=True)
class Trial:
    """A threshold in the closed loop: its worst play, and the largest share of runs.

    `independent` is what the lower bound is taken of.
    """

    threshold: float
    compliance: Compliance
    independent: Compliance
    runs: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """`trial` is the one that was taken; None: no threshold holds, for the `reason`."""

    trials: tuple[Trial, ...]
    trial: Trial | None
    reason: str


class Grid:
    """Numbers of pairs by wave and age. Looks up what is known of (reference, wave), NaN where nothing is."""

    def __init__(self, pairs: TrainingPairs, numbers: Numbers, horizon: int) -> None:
        self.horizon = horizon
        self._first = int(pairs.references.min()) if len(pairs) else 0
        size = int(pairs.waves.max()) - self._first + 1 if len(pairs) else 0
        self._cells = np.full((size, horizon + 1), np.nan)
        near = pairs.ages <= horizon
        self._cells[pairs.waves[near] - self._first, pairs.ages[near]] = numbers[near]

    def at(self, reference: int, wave: int) -> float:
        return float(self._cells[wave - self._first, wave - reference])


def play(waves: Sequence[int], reference: int, errors: Grid, runs: Callable[[int, int], bool]) -> Play:
    """Decide wave after wave by `runs(reference, wave)`; at the horizon, or where nothing is known, run."""
    decided, seen = np.zeros(len(waves), bool), np.zeros(len(waves))
    prevented = np.full(len(waves), np.nan)
    for at, wave in enumerate(waves):
        late = wave - reference > errors.horizon
        error = np.nan if late else errors.at(reference, wave)
        if late or np.isnan(error) or runs(reference, wave):
            decided[at], prevented[at], reference = True, error, wave
        else:
            seen[at] = error
    return Play(decided, seen, prevented)


def calibrated(
    pairs: TrainingPairs,
    bound: float,
    confidence: float,
    horizon: int,
    seed: int = 0,
    fit: Fit = RandomForest,
) -> Calibration:
    """The threshold with the fewest runs whose compliance is at least `confidence`, by its lower bound."""
    waves = np.unique(np.concatenate([pairs.references, pairs.waves]))
    labels = pairs.labels(bound)
    near = pairs.ages <= horizon
    played = [int(wave) for wave in waves[len(waves) // 3 :]]
    faultless = lower_bound(len(played), len(played))
    if faultless < confidence:
        return Calibration(
            (),
            None,
            f"too few waves for a test: {len(played)} without a fault would show {faultless:.1%}, "
            f"and {confidence:.0%} is wanted",
        )
    starts = np.linspace(len(waves) // 3, len(waves), STRETCHES + 1).astype(int)
    probabilities = np.full(len(pairs), np.nan)
    for begin, end in pairwise(starts):
        stretch = near & np.isin(pairs.waves, waves[begin:end])
        before = near & (pairs.waves < waves[begin])
        if stretch.any() and before.any():
            forest = fit(pairs.features[before], labels[before], seed)
            probabilities[stretch] = forest.probability(pairs.features[stretch])
    beginnings = [int(waves[starts[0] - back]) for back in BEGINNINGS if back <= starts[0]]
    grids = Grid(pairs, probabilities, horizon), Grid(pairs, pairs.errors, horizon)
    trials = []
    for threshold in THRESHOLDS:
        trials.append(_trial(threshold, played, beginnings, bound, *grids))
        if trials[-1].independent.lower < confidence:
            break
    passed = [trial for trial in trials if trial.independent.lower >= confidence]
    fewest = min(passed, key=lambda trial: trial.runs) if passed else None
    return _chosen(tuple(trials), fewest, confidence)


def _trial(
    threshold: float,
    waves: Sequence[int],
    beginnings: Sequence[int],
    bound: float,
    probabilities: Grid,
    errors: Grid,
) -> Trial:
    def runs(reference: int, wave: int) -> bool:
        return not probabilities.at(reference, wave) < threshold

    plays = [play(waves, beginning, errors, runs) for beginning in beginnings]
    worst = min(plays, key=lambda one: one.independent(bound).lower)
    return Trial(
        threshold,
        worst.compliance(bound),
        worst.independent(bound),
        max(one.share for one in plays),
    )


def _chosen(trials: tuple[Trial, ...], passed: Trial | None, confidence: float) -> Calibration:
    if passed is None:
        first = trials[0]
        return Calibration(
            trials,
            None,
            f"no threshold holds: the most careful kept the bound in {first.compliance.share:.1%} of "
            f"{first.compliance.waves} waves, lower bound {first.independent.lower:.1%}, of {confidence:.0%}",
        )
    if passed.runs > confidence:
        return Calibration(
            trials,
            None,
            f"no threshold holds: each that keeps the bound runs more than {confidence:.0%} of waves",
        )
    return Calibration(trials, passed, "")

"""From training to application, and back: what a job does with a wave, as values.

1. *Training*: each wave is run, at least `Policy.training` of them. Their pairs are the lesson.
2. *Test*: the closed loop chooses a threshold (`closed_loop.calibrated`). None holds: training goes on,
   and the test is tried again after `RETEST` further executions.
3. *Application*: where P(error > bound) reaches the threshold, the job runs. It also runs where the last
   execution is older than the horizon, where a feature is outside of what training saw, and as an audit.
   Else it is skipped. A stricter threshold than the tested one is taken while looks at skips show more
   waves above the bound than are wanted (`threshold_now`). After every `REFIT` executions the forest is
   fitted anew with their pairs, unless there are signs of a break.
4. An alarm (`drift.Looks`) leads back to training. After `RETEST` executions, whose pairs are all known, what
   was learned before decides about them once more. Does that not refute it, it was a false alarm, and the
   forest is in charge again. Else it is forgotten, and training goes on.

`Progress` is all that is kept between two waves, beside the pairs. A lesson is made anew from both and is
the same each time. The answer depends on nothing else: a hash of job and wave decides about audits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from lineage_service.triggering.changes.changed_elements import Numbers
from lineage_service.triggering.changes.impact import TIMES
from lineage_service.triggering.learning import drift
from lineage_service.triggering.learning.closed_loop import Calibration, Grid, calibrated, play
from lineage_service.triggering.learning.compliance import Compliance
from lineage_service.triggering.learning.drift import NO_LOOKS, Looks
from lineage_service.triggering.learning.forest import ErrorForest, Forest, RandomForest, size_of
from lineage_service.triggering.learning.training_pairs import TrainingPairs

TRAINING, APPLICATION = "training", "application"
#: Executions after which a test is tried again, and a forest fitted again.
RETEST, REFIT = 25, 25
#: The usual deviation of errors from their expected size is never taken for less: a quarter of the error.
LEAST_DEVIATION = 0.25
#: An expected size from which a job is run, where deviations are measured: 0.6 times the bound.
CLOSE_TO_BOUND = 0.5
#: A feature may leave the training's range by this share of the range, or of its size. A level that hardly
#: moved in training may drift; audits notice what comes of it.
MARGIN, MARGIN_OF_SIZE = 0.5, 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a user asked for: `bound` of the error, kept in a share `confidence` of waves.

    `horizon`: waves after which the job runs in any case; `training`: executions before the first test;
    `audit`: the share of skips that is run all the same.

    """

    bound: float
    confidence: float = 0.95
    horizon: int = 24
    training: int = 100
    audit: float = 0.05
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a job is. `since`: the first wave of this training. `compliance`: what the test showed;
    `deviation`: how far errors were from their expected sizes.

    `fitted`: the last wave whose pairs the forest has; `executions` since `since`, and at the last test
    or fit. `former`: where the job was before an alarm, as long as nobody knows whether that still holds.

    """

    phase: str = TRAINING
    since: int = 0
    reason: str = "training has begun"
    threshold: float | None = None
    compliance: Compliance | None = None
    deviation: float = LEAST_DEVIATION
    executions: int = 0
    tried: int = 0
    fitted: int = -1
    looks: Looks = NO_LOOKS
    former: Progress | None = None

    @property
    def oldest(self) -> int:
        """No pair of waves before this one is looked at any more."""
        return self.since if self.former is None else self.former.since

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Lesson:
    """Fitted forests, of probabilities and of sizes of errors, and the range of each feature that they saw,
    widened by `MARGIN`.
    """

    forest: Forest
    errors: ErrorForest
    names: tuple[str, ...]
    least: Numbers
    most: Numbers

    def unlike(self, features: Numbers) -> str:
        """The first feature outside of the range; empty: none is."""
        outside = np.flatnonzero((features < self.least) | (features > self.most))
        return self.names[outside[0]] if len(outside) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`is_audit`: it would have been skipped. `is_unlike`: a feature is outside of what training saw.
    `expected`: the size of the error; None: it is not known, and then strange errors are not noticed.
    """

    run: bool
    reason: str
    phase: str
    probability: float | None = None
    threshold: float | None = None
    is_audit: bool = False
    is_unlike: bool = False
    expected: float | None = None


def progress_of_json(kept: Mapping[str, Any]) -> Progress:
    compliance, former = kept["compliance"], kept.get("former")
    nested = {
        "looks": Looks(**kept["looks"]),
        "compliance": None if compliance is None else Compliance(**compliance),
        "former": None if former is None else progress_of_json(former),
    }
    return Progress(**{**kept, **nested})


def lesson(progress: Progress, pairs: TrainingPairs, policy: Policy) -> Lesson:
    """The forest in charge, from the pairs of executed waves: always the same for the same progress."""
    near = (pairs.references >= progress.since) & (pairs.waves <= progress.fitted)
    of_training = pairs.where(near & (pairs.ages <= policy.horizon))
    forest = RandomForest(of_training.features, of_training.labels(policy.bound), policy.seed)
    errors = ErrorForest(of_training.features, of_training.errors, policy.bound, policy.seed)
    least, most = (side.reduce(of_training.features, axis=0) for side in (np.fmin, np.fmax))
    # A weekday that training did not see yet is no new pattern.
    size = np.maximum(np.abs(least), np.abs(most))
    margin = np.maximum(MARGIN * (most - least), MARGIN_OF_SIZE * size)
    margin[np.isin(pairs.names, TIMES)] = np.inf
    return Lesson(forest, errors, pairs.names, least - margin, most + margin)


def verdict(
    progress: Progress,
    policy: Policy,
    *,
    job: str,
    wave: str,
    age: int,
    probability: float | None = None,
    unlike: str = "",
    expected: float | None = None,
) -> Verdict:
    """Run or skip. `age`: waves since the last execution; `probability`, `unlike` and `expected` (the size of
    the error, as `forest.size_of` it) are the lesson's.

    Without a probability, as in training, the job runs.
    """
    threshold = threshold_now(progress, policy)
    in_words = threshold_in_words(progress, policy)
    likely = f"P(error > {policy.bound:g}) = {probability or 0:.2f}, threshold {in_words}"
    run = Verdict(
        run=True,
        reason=likely,
        phase=progress.phase,
        probability=probability,
        threshold=threshold,
        expected=expected,
    )
    if progress.phase == TRAINING or threshold is None:
        return replace(run, reason=progress.reason)
    if age > policy.horizon:
        return replace(run, reason=f"the last execution is {age} waves old")
    if probability is None:
        return replace(run, reason="the changes are not known")
    if unlike:
        return replace(run, reason=f"training saw no {unlike} like this one", is_unlike=True)
    if probability >= threshold:
        return run
    if _is_audit(job, wave, progress.looks, policy.audit):
        return replace(run, reason=f"audit; {likely}", is_audit=True)
    if progress.looks.is_close:
        return replace(run, reason=f"a closer look, since {progress.looks.why_close}; {likely}")
    return replace(run, run=False)


def threshold_now(progress: Progress, policy: Policy) -> float | None:
    """From which probability on a wave is run: never more than the tested threshold. None: in training."""
    if progress.threshold is None or progress.compliance is None:
        return progress.threshold
    strictness = progress.looks.strictness(progress.compliance, policy.confidence)
    return progress.threshold if strictness == 1 else round(progress.threshold * strictness, 4)


def threshold_in_words(progress: Progress, policy: Policy) -> str:
    """The one of now, and that of the test if this is another one."""
    tested, now = progress.threshold, threshold_now(progress, policy)
    if tested == now:
        return f"{now or 0:g}"
    return f"{now or 0:.3g} (stricter than {tested:g} of the test, since skips were wrong too often)"


def _is_audit(job: str, wave: str, looks: Looks, share: float) -> bool:
    """Of 20 skips (at a share of 0.05) one, and each is as likely as any other: by a hash of job and wave.
    Of the first `drift.EARLY` ones, one of 10.

    With an equal chance for each skip there would be long gaps, in which a break is not seen.
    """
    if not share:
        return False
    group = looks.group_of(share)
    place, is_audited = looks.place_of(group)
    return not is_audited and chance_of(job, wave) < 1 / (group - place)


def chance_of(job: str, wave: str) -> float:
    """A number from 0 to 1 that is as good as random and the same whenever this wave is asked for."""
    digest = hashlib.blake2b(f"{job}\0{wave}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2.0**64


def skipped(progress: Progress) -> Progress:
    return replace(progress, looks=progress.looks.seen(drift.SKIPPED))


def executed(progress: Progress, policy: Policy, decided: Verdict, *, wave: int, error: float) -> Progress:
    """After an execution whose output was compared. `error`: what skipping would have meant, NaN if not
    known.

    In training, ask `is_test_due` next.
    """
    progress = replace(progress, executions=progress.executions + 1)
    if progress.phase == TRAINING:
        return progress
    looks = _looked(progress, policy, decided, error)
    alarm = looks.alarm(policy.confidence)
    if alarm:
        return Progress(
            since=wave, reason=f"back to training: {alarm}", former=replace(progress, looks=NO_LOOKS)
        )
    progress = replace(progress, looks=looks)
    if progress.executions >= progress.tried + REFIT and not looks.is_suspicious:
        return replace(progress, tried=progress.executions, fitted=wave)
    return progress


def is_test_due(progress: Progress, policy: Policy) -> bool:
    return progress.phase == TRAINING and progress.executions >= executions_wanted(progress, policy)


def executions_wanted(progress: Progress, policy: Policy) -> int:
    """Executions of this training before its next test."""
    if progress.former is not None:
        return RETEST
    return progress.tried + RETEST if progress.tried else policy.training


def promoted(
    progress: Progress,
    policy: Policy,
    pairs: TrainingPairs,
    wave: int,
    test: Calibration | None = None,
) -> Progress:
    """In charge, if a threshold holds; else in training, with the reason. `pairs`: of all executed waves.

    `test`: that of those pairs which are of this training, if it was made already.
    """
    if progress.former is not None:
        return _after_doubt(progress, progress.former, policy, pairs, wave)
    of_training = pairs.where(pairs.references >= progress.since)
    if test is None:
        test = calibrated(
            of_training,
            policy.bound,
            policy.confidence,
            policy.horizon,
            seed=policy.seed,
        )
    progress = replace(progress, tried=progress.executions)
    if test.trial is None:
        return replace(progress, reason=test.reason)
    return replace(
        progress,
        phase=APPLICATION,
        reason="",
        threshold=test.trial.threshold,
        compliance=test.trial.compliance,
        deviation=_deviation(of_training, policy),
        fitted=wave,
        looks=NO_LOOKS,
    )


def _after_doubt(
    progress: Progress, former: Progress, policy: Policy, pairs: TrainingPairs, wave: int
) -> Progress:
    """In charge as before, unless the waves since the alarm refute that what was learned then keeps the bound
    as wanted: by the exact upper bound, of 25 waves four above it do.

    A wave with a feature that it never saw counts as one above the bound.
    """
    learned = lesson(former, pairs, policy)
    later = pairs.where((pairs.references >= progress.since) & (pairs.ages <= policy.horizon))
    probabilities = Grid(later, learned.forest.probability(later.features), policy.horizon)
    unlike = np.array([bool(learned.unlike(row)) for row in later.features], bool)
    errors = Grid(later, np.where(unlike, np.inf, later.errors), policy.horizon)

    def runs(reference: int, wave: int) -> bool:
        is_probable = not probabilities.at(reference, wave) < (former.threshold or 0)
        return is_probable and not np.isinf(errors.at(reference, wave))

    played = play(np.unique(later.waves).tolist(), progress.since, errors, runs)
    if not len(played.errors) or played.compliance(policy.bound).upper < policy.confidence:
        return replace(progress, former=None)
    executions = former.executions + progress.executions
    return replace(former, executions=executions, tried=executions, fitted=wave)


def _looked(progress: Progress, policy: Policy, decided: Verdict, error: float) -> Looks:
    looks, exceeds = progress.looks, error > policy.bound
    if decided.is_unlike:
        return looks.seen(drift.UNLIKE_RUN)
    if error != error or decided.probability is None:
        return looks.seen(drift.RUN)
    if decided.expected is not None:
        size = float(size_of(np.array([error]), policy.bound)[0])
        looks = looks.measured((size - decided.expected) / progress.deviation, decided.probability)
    if decided.probability < (decided.threshold or 0):
        looks = looks.surprised(decided.probability, exceeds)
    if (decided.threshold or 0) <= decided.probability < (progress.threshold or 0):
        return looks.seen(drift.SPARED_BROKEN if exceeds else drift.SPARED_KEPT)
    if decided.is_audit:
        return looks.seen(drift.BROKEN if exceeds else drift.KEPT)
    return looks.seen(drift.RUN)


def _deviation(pairs: TrainingPairs, policy: Policy) -> float:
    """How far errors are from their expected sizes: the root of the mean square, where a forest of the first
    two thirds of the waves is played on the last one. Does it run none of these, then of all their pairs.
    """
    pairs = pairs.where(pairs.ages <= policy.horizon)
    waves = np.unique(pairs.waves)
    later = pairs.waves >= waves[len(waves) * 2 // 3]
    before, after = pairs.where(~later), pairs.where(later)
    forest = ErrorForest(before.features, before.errors, policy.bound, policy.seed)
    expected = Grid(after, forest.expected(after.features), policy.horizon)
    errors = Grid(after, after.errors, policy.horizon)
    played = [int(wave) for wave in waves[len(waves) * 2 // 3 :]]
    sizes: list[float] = []

    def runs(reference: int, wave: int) -> bool:
        size = expected.at(reference, wave)
        if size < -CLOSE_TO_BOUND:
            return False
        sizes.append(size)
        return True

    prevented = play(played, played[0] - 1, errors, runs).prevented
    differences = size_of(prevented[~np.isnan(prevented)], policy.bound) - np.array(sizes)
    if not len(differences):
        differences = size_of(after.errors, policy.bound) - forest.expected(after.features)
    return max(float(np.sqrt((differences**2).mean())), LEAST_DEVIATION)

"""All pairs of waves of a job, with the features that the product computes and the true errors."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lineage_service.triggering.changes import impact
from lineage_service.triggering.changes.changed_elements import Changes, Elements, Flags, Numbers, difference
from lineage_service.triggering.changes.impact import Features, Impact, Level
from lineage_service.triggering.changes.output_error import ErrorMeasure, relative_error
from lineage_service.triggering.learning.training_pairs import TrainingPairs, Waves

#: What is known of the time of a wave.
Clock = Callable[[int], Features]
#: More features of the changes between a reference and a wave.
Further = Callable[[int, int, Changes], Features]


@dataclass(frozen=True, slots=True)
class Job:
    """A step of a workflow over so many `waves`, as if it had always run. `any_change`: did the wave change
    its input at all? `rows`: the share of its elements that changed since the wave before.
    """

    workflow: str
    step: str
    pairs: TrainingPairs
    waves: int
    any_change: Flags
    rows: Numbers


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of a job's input: the features of all pairs up to an age."""

    names: tuple[str, ...]
    references: Waves
    waves: Waves
    features: Numbers
    rows: Numbers

    def job(
        self,
        workflow: str,
        step: str,
        outputs: Sequence[Elements],
        measure: ErrorMeasure = relative_error,
    ) -> Job:
        errors = np.array(
            [
                measure(outputs[reference], outputs[wave], 0)
                for reference, wave in zip(self.references, self.waves, strict=True)
            ]
        )
        pairs = TrainingPairs(self.names, self.references, self.waves, self.features, errors)
        return Job(workflow, step, pairs, len(outputs), self.rows > 0, self.rows)


def seen(
    columns: Sequence[str],
    inputs: Sequence[Elements],
    horizon: int,
    clock: Clock,
    further: Further | None = None,
) -> Seen:
    """Of an input that is replaced by each wave."""
    levels = [impact.level(wave) for wave in inputs]

    def between(reference: int, wave: int) -> Changes:
        return difference(inputs[reference], inputs[wave])

    return _seen(columns, levels, horizon, clock, between, further)


def seen_changes(
    columns: Sequence[str],
    changes: Sequence[Changes],
    levels: Sequence[Level],
    horizon: int,
    clock: Clock,
    further: Further | None = None,
) -> Seen:
    """Of an input that is known by what each wave changed: `changes[0]` is not looked at."""
    recent: dict[int, Changes] = {}
    newest = 0

    def between(reference: int, wave: int) -> Changes:
        nonlocal recent, newest
        if wave != newest:
            recent = {
                first: past.then(changes[wave]) for first, past in recent.items() if first >= wave - horizon
            }
            recent[wave - 1], newest = changes[wave], wave
        return recent[reference]

    return _seen(columns, levels, horizon, clock, between, further)


def _seen(
    columns: Sequence[str],
    levels: Sequence[Level],
    horizon: int,
    clock: Clock,
    between: Callable[[int, int], Changes],
    further: Further | None = None,
) -> Seen:
    pairs: list[tuple[int, int]] = []
    rows: list[Numbers] = []
    shares = np.zeros(len(levels))
    names: tuple[str, ...] = ()
    impacts: deque[Impact] = deque(maxlen=horizon)
    for wave in range(1, len(levels)):
        step = between(wave - 1, wave)
        shares[wave] = len(step) / max(levels[wave].count, 1)
        impacts.append(impact.impact(step, levels[wave]))
        for reference in range(max(0, wave - horizon), wave):
            since = list(impacts)[-(wave - reference) :]
            changes = between(reference, wave)
            features = impact.joined(
                impact.features(columns, changes, levels[reference], levels[wave], since),
                impact.age(wave - reference, float(wave - reference)),
                clock(wave),
                *(() if further is None else (further(reference, wave, changes),)),
            )
            names = features.names
            pairs.append((reference, wave))
            rows.append(features.values)
    references, waves = np.array(pairs, np.int64).T
    return Seen(names, references, waves, np.array(rows), shares)


def hourly(wave: int) -> Features:
    return impact.time_of(wave % 24, wave // 24 % 7)


def of_cycle(waves: int) -> Clock:
    """A clock on which so many waves are a day."""
    return lambda wave: impact.time_of(wave % waves * 24 / waves, 0)


def random_job(count: int, horizon: int, seed: int) -> Job:
    """An output that has nothing to do with the input: of three pairs of waves two differ by more than any
    bound.
    """
    chance = np.random.default_rng(seed)
    inputs = [Elements(np.arange(50, dtype=np.uint64), chance.random((50, 1))) for _ in range(count)]
    outputs = [
        Elements(np.zeros(1, np.uint64), np.array([[float(chance.choice([1, 10, 100]))]]))
        for _ in range(count)
    ]
    return seen(["value"], inputs, horizon, hourly).job("random", "noise", outputs)

"""A threshold is taken only if its plays, decided again by a loop, keep the bound by an exact count."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineage_service.triggering.changes.changed_elements import Flags, Numbers
from lineage_service.triggering.learning.closed_loop import BEGINNINGS, THRESHOLDS, calibrated
from lineage_service.triggering.learning.compliance import Compliance, lower_bound
from lineage_service.triggering.learning.training_pairs import TrainingPairs

pytestmark = pytest.mark.property

BOUND, HORIZON = 0.1, 6


def tail(successes: int, trials: int, probability: Fraction) -> Fraction:
    """The probability of so many successes or more, exactly."""
    return sum(
        (
            comb(trials, count) * probability**count * (1 - probability) ** (trials - count)
            for count in range(successes, trials + 1)
        ),
        Fraction(0),
    )


@given(st.integers(1, 90), st.data())
@settings(max_examples=40)
def test_a_lower_bound_is_the_exact_one(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(1, trials))
    bound = lower_bound(successes, trials)
    below, above = (Fraction(bound + step).limit_denominator(10**9) for step in (-1e-6, 1e-6))
    assert (
        tail(successes, trials, below) <= Fraction(5, 100) <= tail(successes, trials, min(above, Fraction(1)))
    )


def test_59_faultless_waves_are_the_least_for_95_percent() -> None:
    assert Compliance(58, 58).lower < 0.95 <= Compliance(59, 59).lower
    assert Compliance(0, 10).lower == 0
    assert Compliance(10, 10).upper == 1
    assert Compliance(3000, 3000).lower > 0.999


class _OfFeature:
    """The probability is the only feature, so that a loop can say what is decided."""

    def __init__(self, features: Numbers, labels: Flags, seed: int) -> None: ...

    def probability(self, features: Numbers) -> Numbers:
        return features[:, 0]


@given(st.integers(0, 10_000), st.floats(0, 0.5))
@settings(max_examples=25)
def test_a_threshold_that_is_taken_keeps_the_bound_in_a_loop(seed: int, noise: float) -> None:
    chance = np.random.default_rng(seed)
    count = 150
    levels = np.cumsum(chance.normal(0, 0.06, count))
    errors: dict[tuple[int, int], float] = {}
    asked: dict[tuple[int, int], float] = {}
    for wave in range(1, count):
        for reference in range(max(0, wave - HORIZON), wave):
            error = abs(levels[wave] - levels[reference])
            errors[reference, wave] = error
            asked[reference, wave] = float(np.clip(error * 4 + noise * chance.normal(), 0, 1))
    pairs = TrainingPairs(
        ("probability",),
        np.array([reference for reference, _ in errors]),
        np.array([wave for _, wave in errors]),
        np.array(list(asked.values()))[:, None],
        np.array(list(errors.values())),
    )
    result = calibrated(pairs, BOUND, 0.95, HORIZON, fit=_OfFeature)
    if result.trial is None:
        assert result.reason
        return
    waves = range(count // 3, count)
    for threshold in (value for value in THRESHOLDS if value <= result.trial.threshold):
        kept = []
        for back in BEGINNINGS:
            last, above = waves[0] - back, ""
            for wave in waves:
                if wave - last > HORIZON or asked[last, wave] >= threshold:
                    last = wave
                above += " " if wave == last or errors[last, wave] <= BOUND else "x"
            rows, all_above = len(above.split()), above.count("x")
            trials = len(waves) * rows // all_above if rows else len(waves)
            assert tail(trials - rows, trials, Fraction(95, 100)) <= Fraction(5, 100)
            kept.append(Compliance(len(waves) - all_above, len(waves)))
        if threshold == result.trial.threshold:
            assert result.trial.compliance in kept

"""Whether features that cost a walk are worth it: the closed loop is played with them and without. Pure.

Both plays choose the threshold with the fewest runs that keeps the bound as wanted, so runs are compared at
equal compliance. Features that lower them too little are dropped, the dearest first, and need not be computed
in application. A job of plain means pays for no walk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lineage_service.triggering.learning.closed_loop import Calibration, Fit, calibrated
from lineage_service.triggering.learning.forest import RandomForest
from lineage_service.triggering.learning.phases import Policy
from lineage_service.triggering.learning.training_pairs import TrainingPairs

__all__ = ["WORTH", "FeatureChoice", "feature_choice", "names_without"]

#: Features must save so many of all waves.
WORTH = 0.03


@dataclass(frozen=True, slots=True)
class FeatureChoice:
    """`names` are the features that stay, `dropped` the groups that went. `test` is that of `names`."""

    names: tuple[str, ...]
    dropped: tuple[str, ...]
    test: Calibration

    def needs(self, group: str) -> bool:
        return group not in self.dropped


def feature_choice(
    pairs: TrainingPairs, policy: Policy, groups: Sequence[str], fit: Fit = RandomForest
) -> FeatureChoice:
    """`groups` are parts of names, the dearest first; `pairs` those of the training.

    Where no threshold holds without them, they stay: more training may show what they are worth.
    """
    dropped = [group for group in groups if _is_unknown(pairs, group)]
    names = names_without(pairs.names, dropped)
    test = _tested(pairs.with_features(names), policy, fit)
    for group in groups:
        others = names_without(names, [group])
        if len(others) == len(names) or not others:
            continue
        without = _tested(pairs.with_features(others), policy, fit)
        if without.trial is not None and not _saves(test, without):
            names, test = others, without
            dropped.append(group)
    return FeatureChoice(names, tuple(dropped), test)


def names_without(names: Sequence[str], groups: Sequence[str]) -> tuple[str, ...]:
    """Those that belong to none of the groups."""
    return tuple(name for name in names if not any(group in name for group in groups))


def _is_unknown(pairs: TrainingPairs, group: str) -> bool:
    """Has it features, and none of them a value?"""
    chosen = [group in name for name in pairs.names]
    return any(chosen) and bool(np.isnan(pairs.features[:, chosen]).all())


def _tested(pairs: TrainingPairs, policy: Policy, fit: Fit) -> Calibration:
    return calibrated(pairs, policy.bound, policy.confidence, policy.horizon, policy.seed, fit)


def _saves(test: Calibration, without: Calibration) -> bool:
    assert without.trial is not None
    return test.trial is not None and test.trial.runs <= without.trial.runs - WORTH

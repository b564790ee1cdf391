"""Features that cost a walk stay only where they save runs at the same compliance."""

from __future__ import annotations

import numpy as np
import pytest

from lineage_service.triggering.changes.changed_elements import Numbers
from lineage_service.triggering.learning import forest
from lineage_service.triggering.learning.feature_choice import FeatureChoice, feature_choice
from lineage_service.triggering.learning.phases import Policy, Progress, promoted
from lineage_service.triggering.learning.training_pairs import TrainingPairs

HORIZON, COUNT = 6, 160
POLICY = Policy(bound=0.1, horizon=HORIZON)


@pytest.fixture(autouse=True)
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forest, "TREES", 15)


def pairs_of(cheap: str, dear: str) -> TrainingPairs:
    """Of an output that follows a level which moves at random; features that say so, or say nothing."""
    level = np.cumsum(np.random.default_rng(3).normal(0, 0.5, COUNT))
    references, waves = np.array(
        [(reference, wave) for wave in range(COUNT) for reference in range(max(0, wave - HORIZON), wave)]
    ).T
    moved = np.abs(level[waves] - level[references])
    says: dict[str, Numbers] = {
        "the change": moved,
        "nothing": np.zeros(len(moved)),
        "what is not known": np.full(len(moved), np.nan),
    }
    features = np.column_stack([waves - references, says[cheap], says[dear]])
    return TrainingPairs(("age", "impact", "lineage.reach"), references, waves, features, moved / 8)


def choice(cheap: str, dear: str) -> FeatureChoice:
    return feature_choice(pairs_of(cheap, dear), POLICY, ["lineage."])


def test_features_that_save_runs_stay() -> None:
    chosen = choice("nothing", "the change")
    assert chosen.needs("lineage.")
    assert chosen.names == ("age", "impact", "lineage.reach")
    assert chosen.test.trial is not None


@pytest.mark.parametrize("dear", ["the change", "nothing", "what is not known"])
def test_features_that_save_nothing_go(dear: str) -> None:
    chosen = choice("the change", dear)
    assert not chosen.needs("lineage.")
    assert chosen.names == ("age", "impact")
    assert chosen.test.trial is not None


def test_where_no_threshold_holds_nothing_goes() -> None:
    chosen = choice("nothing", "nothing")
    assert chosen.test.trial is None
    assert chosen.dropped == ()


def test_a_group_that_is_not_there_is_not_played() -> None:
    pairs = pairs_of("the change", "nothing").with_features(["age", "impact"])
    assert feature_choice(pairs, POLICY, ["lineage."]).dropped == ()


def test_its_test_is_that_by_which_the_forest_comes_into_charge() -> None:
    pairs = pairs_of("the change", "nothing")
    chosen = feature_choice(pairs, POLICY, ["lineage."])
    kept = pairs.with_features(chosen.names)
    again = promoted(Progress(), POLICY, kept, COUNT - 1)
    assert again.threshold is not None
    assert promoted(Progress(), POLICY, kept, COUNT - 1, chosen.test) == again

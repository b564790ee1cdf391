"""The random forest: how probable is it that the output has changed by more than is tolerated?

The only module that imports scikit-learn (`lineage-master[trigger]`), and that when a forest is fitted. A
forest is never written: it is fitted anew from the pairs, and the same pairs and seed give the same one.
"""

from __future__ import annotations

from typing import Any, Protocol

from lineage_service.errors import LineageError
from lineage_service.triggering.changed_elements import Flags, Numbers

TREES = 100
#: Pairs in a leaf, so that a tree does not repeat single pairs.
LEAF = 3
#: The share of the features that a split chooses from: many of them say nothing of a job.
FEATURES_OF_A_SPLIT = 0.5
#: Pairs that a tree is made of at most. Neighbouring pairs are nearly alike: more cost time and teach little.
PAIRS_OF_A_TREE = 1_000


class TriggerExtraError(LineageError):
    """scikit-learn is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "a bound above 0 needs scikit-learn, which is not installed: "
            "pip install 'lineage-master[trigger]'"
        )


class Forest(Protocol):
    """What answers rows of features (k, names) with probabilities (k)."""

    def probability(self, features: Numbers) -> Numbers: ...


class RandomForest:
    """A forest of scikit-learn, fitted to features (k, names) and labels (k), k >= 1."""

    def __init__(self, features: Numbers, labels: Flags, seed: int = 0) -> None:
        self._trees = _classifier(len(labels), seed).fit(features, labels)

    def probability(self, features: Numbers) -> Numbers:
        classes = list(self._trees.classes_)
        shares: Numbers = self._trees.predict_proba(features)
        # Where all labels were alike, there is one class only.
        return shares[:, classes.index(True)] if True in classes else 0 * shares[:, 0]


def _classifier(pairs: int, seed: int) -> Any:
    try:
        from sklearn.ensemble import RandomForestClassifier
    except ImportError as error:
        raise TriggerExtraError from error
    return RandomForestClassifier(
        n_estimators=TREES,
        min_samples_leaf=LEAF,
        max_features=FEATURES_OF_A_SPLIT,
        max_samples=min(pairs, PAIRS_OF_A_TREE),
        n_jobs=1,
        random_state=seed,
    )

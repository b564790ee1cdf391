"""The random forest: how probable is it that the output has changed by more than is tolerated?

The only module that imports scikit-learn (`lineage-master[trigger]`), and that when a forest is fitted. A
forest is never written: it is fitted anew from the pairs, and the same pairs and seed give the same one.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from lineage_service.errors import LineageError
from lineage_service.triggering.changes.changed_elements import Flags, Numbers

TREES = 60
#: Pairs in a leaf, so that a tree does not repeat single pairs.
LEAF = 3
#: The share of the features that a split chooses from: many of them say nothing of a job.
FEATURES_OF_A_SPLIT = 0.5
#: Pairs that a tree is made of at most. Neighbouring pairs are nearly alike: more cost time and teach little.
#: Fewer trees of more pairs cost a little more, and run fewer waves at the same compliance.
PAIRS_OF_A_TREE = 2_000
#: Sizes of errors are told apart up to about 7 times the bound, and down to a seventh.
LARGEST_SIZE = 2.0


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
        self._trees = _trees("RandomForestClassifier", len(labels), seed).fit(features, labels)

    def probability(self, features: Numbers) -> Numbers:
        classes = list(self._trees.classes_)
        shares: Numbers = self._trees.predict_proba(features)
        # Where all labels were alike, there is one class only.
        return shares[:, classes.index(True)] if True in classes else 0 * shares[:, 0]


class ErrorForest:
    """A forest that says how large the error is, as `size_of` it. Fitted like `RandomForest`."""

    def __init__(self, features: Numbers, errors: Numbers, bound: float, seed: int = 0) -> None:
        self._trees = _trees("RandomForestRegressor", len(errors), seed).fit(features, size_of(errors, bound))

    def expected(self, features: Numbers) -> Numbers:
        sizes: Numbers = self._trees.predict(features)
        return sizes


def size_of(errors: Numbers, bound: float) -> Numbers:
    """The logarithm of errors in multiples of the bound, from -LARGEST_SIZE to LARGEST_SIZE."""
    smallest = bound * math.exp(-LARGEST_SIZE)
    sizes: Numbers = np.minimum(np.log(np.maximum(errors, smallest) / bound), LARGEST_SIZE)
    return sizes


def _trees(kind: str, pairs: int, seed: int) -> Any:
    try:
        from sklearn import ensemble
    except ImportError as error:
        raise TriggerExtraError from error
    return getattr(ensemble, kind)(
        n_estimators=TREES,
        min_samples_leaf=LEAF,
        max_features=FEATURES_OF_A_SPLIT,
        max_samples=min(pairs, PAIRS_OF_A_TREE),
        n_jobs=1,
        random_state=seed,
    )

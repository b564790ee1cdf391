"""Forests as numbers: what scikit-learn has grown, asked without it.

A question about a wave asks a forest once. To import scikit-learn for that, and to grow the same trees again,
would take longer than all else of the answer. The numbers of the trees give the same floats: a feature is
compared as a float of 32 bits, NaN goes the way that the split has for it, and trees are added up in their
order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lineage_service.triggering.changes.changed_elements import Numbers

__all__ = ["NODES", "GrownTrees", "grown"]

Integers = npt.NDArray[np.int32]
#: What there is of each node, and where each tree begins.
NODES = ("left", "right", "feature", "threshold", "missing_left", "value")
_LEAF = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class GrownTrees:
    """`roots` (trees); of each node (n) its children `left` and `right`, -1 of a leaf, the `feature` whose
    values up to the `threshold` go left, whether one that is not known does, and the `value` of a leaf.
    """

    roots: Integers
    left: Integers
    right: Integers
    feature: Integers
    threshold: Numbers
    missing_left: npt.NDArray[np.bool_]
    value: Numbers

    def mean(self, features: Numbers) -> Numbers:
        """(k): of rows of features (k, names), the mean of what the trees say."""
        compared = features.astype(np.float32)
        rows = np.arange(len(features))[None, :]
        node = np.repeat(self.roots[:, None], len(features), axis=1)
        while (inner := self.left[node] != _LEAF).any():
            numbers = compared[rows, np.where(inner, self.feature[node], 0)]
            is_left = np.where(np.isnan(numbers), self.missing_left[node], numbers <= self.threshold[node])
            node = np.where(inner, np.where(is_left, self.left[node], self.right[node]), node)
        # One after another, as scikit-learn adds them.
        totals: Numbers = np.cumsum(self.value[node], axis=0)[-1]
        return totals / len(self.roots)

    def to_arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        return {name: getattr(self, name) for name in ("roots", *NODES)}


def grown(estimator: Any) -> GrownTrees:
    """Of a fitted forest of scikit-learn: of a classifier the probability of True, of others the number."""
    classes = getattr(estimator, "classes_", None)
    parts: list[Mapping[str, np.ndarray[Any, Any]]] = []
    roots, count = [], 0
    for member in estimator.estimators_:
        tree = member.tree_
        is_leaf = tree.children_left == _LEAF
        if classes is None:
            value = tree.value[:, 0, 0]
        else:
            true = np.flatnonzero(classes)
            value = tree.value[:, 0, true[0]] if len(true) else np.zeros(tree.node_count)
        parts.append(
            {
                "left": np.where(is_leaf, _LEAF, tree.children_left + count),
                "right": np.where(is_leaf, _LEAF, tree.children_right + count),
                "feature": tree.feature,
                "threshold": tree.threshold,
                "missing_left": tree.missing_go_to_left,
                "value": value,
            }
        )
        roots.append(count)
        count += tree.node_count
    kinds = dict(zip(NODES, ("<i4", "<i4", "<i4", "<f8", "?", "<f8"), strict=True))
    return GrownTrees(
        roots=np.array(roots, np.int32),
        **{name: np.concatenate([part[name] for part in parts]).astype(kinds[name]) for name in NODES},
    )

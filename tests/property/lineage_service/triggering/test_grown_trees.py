"""Trees as numbers say what scikit-learn says, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineage_service.triggering.learning.forest import ErrorForest, RandomForest
from lineage_service.triggering.learning.grown_trees import grown

pytest.importorskip("sklearn")


@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 1 << 30),
    pairs=st.integers(1, 60),
    missing=st.sampled_from([0.0, 0.2]),
    bound=st.sampled_from([-1.0, 0.4, 2.0]),
)
def test_the_same_floats(seed: int, pairs: int, missing: float, bound: float) -> None:
    """Of errors above a bound that all, some or none exceed."""
    chance = np.random.default_rng(seed)

    def features(rows: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        numbers = np.round(chance.normal(size=(rows, 5)), chance.integers(0, 9)) * 10.0 ** chance.integers(
            -9, 9
        )
        numbers[chance.random(numbers.shape) < missing] = np.nan
        return numbers

    taught, asked = features(pairs), features(40)
    asked[:3] = np.nan
    errors = chance.random(pairs)
    forest, sizes = RandomForest(taught, errors > bound, seed), ErrorForest(taught, errors, 0.1, seed)
    assert np.array_equal(grown(forest._trees).mean(asked), forest.probability(asked))
    assert np.array_equal(grown(sizes._trees).mean(asked), sizes.expected(asked))

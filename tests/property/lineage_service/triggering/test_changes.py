"""Laws of changes, impacts and errors, over random containers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineage_service.triggering.changes import impact
from lineage_service.triggering.changes.changed_elements import Changes, Elements, difference, elements
from lineage_service.triggering.changes.output_error import ERRORS, relative_error
from lineage_service.triggering.learning.training_pairs import TrainingPairs

pytestmark = pytest.mark.property

NUMBERS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, float("nan"), float("inf"), 1e308, -1e308, 5e-324]),
    st.floats(width=32),
)


@st.composite
def containers(draw: st.DrawFn, columns: int = 2) -> Elements:
    rows = draw(
        st.dictionaries(
            st.integers(0, 12), st.lists(NUMBERS, min_size=columns, max_size=columns), max_size=10
        )
    )
    keys = sorted(rows)
    values = np.array([rows[key] for key in keys], float).reshape(len(keys), columns)
    return Elements(np.array(keys, np.uint64), values)


def same(one: Changes, other: Changes) -> bool:
    sides = ("keys", "old", "new", "added", "removed")
    return all(
        np.array_equal(getattr(one, side), getattr(other, side), equal_nan=side in ("old", "new"))
        for side in sides
    )


@given(containers(), containers())
def test_an_impact_is_0_if_and_only_if_nothing_changed(before: Elements, now: Elements) -> None:
    changes = difference(before, now)
    found_out = impact.impact(changes, impact.level(now))
    changed = changes.differs().any(axis=0)
    for eq in (found_out.total, found_out.relative):
        assert np.isfinite(eq).all()
        assert ((eq > 0) == changed).all()
    assert (found_out.relative <= 1).all()
    assert changed.any() == (len(changes) > 0)
    assert len(difference(now, now)) == 0


@given(containers(), containers(), containers())
def test_composed_changes_are_the_direct_difference(one: Elements, two: Elements, three: Elements) -> None:
    assert same(difference(one, two).then(difference(two, three)), difference(one, three))


@given(
    st.lists(
        st.tuples(st.text(max_size=3), st.integers(-5, 5), NUMBERS),
        unique_by=lambda row: row[:2],
        max_size=12,
    ),
    st.randoms(use_true_random=False),
)
def test_the_order_of_rows_changes_nothing(rows: list[tuple[str, int, float]], random: object) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for keys in (["name", "number"], []):
        one, other = (elements(table(order), keys, ["value"]) for order in (rows, shuffled))
        assert np.array_equal(one.keys, other.keys)
        assert np.array_equal(one.values, other.values, equal_nan=True)
        nothing = Elements(np.zeros(0, np.uint64), np.zeros((0, 1)))
        features = [
            impact.features(
                ["value"], difference(nothing, side), impact.level(nothing), impact.level(side), []
            ).values
            for side in (one, other)
        ]
        assert np.array_equal(*features)


def table(rows: list[tuple[str, int, float]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    types = pa.string(), pa.int32(), pa.float64()
    return pa.table(
        {
            name: pa.array(column, kind, from_pandas=False)
            for name, column, kind in zip(("name", "number", "value"), columns, types, strict=True)
        }
    )


@given(containers(), containers(), st.sampled_from(sorted(ERRORS)))
def test_an_error_is_0_if_and_only_if_nothing_differs(stale: Elements, correct: Elements, name: str) -> None:
    error = ERRORS[name](stale, correct, 0)
    differs = difference(stale, correct).differs()
    column = differs if name == "rows" else differs[:, 0]
    assert (error > 0) == column.any()
    assert np.isfinite(error)
    assert name == "rmse" or error <= 1


@given(containers(1), containers(1))
def test_the_relative_error_is_that_of_a_loop(stale: Elements, correct: Elements) -> None:
    """Eq. 3 of plain numbers, from its prose."""
    sides = [
        {int(key): float(value) for key, value in zip(side.keys, side.values[:, 0], strict=True)}
        for side in (stale, correct)
    ]
    keys = set(sides[0]) | set(sides[1])
    plain = [value for side in sides for value in side.values()]
    if not all(0 < value < 1e30 for value in plain) or not keys:
        return
    pairs = [tuple(side.get(key, 0.0) for side in sides) for key in keys]
    changed = sum(one != other for one, other in pairs)
    distance = sum(abs(one - other) for one, other in pairs)
    expected = changed * distance / (len(keys) * sum(max(pair) for pair in pairs))
    assert relative_error(stale, correct) == pytest.approx(min(expected, 1), rel=1e-9, abs=1e-300)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0, 1), st.floats(0, 1))
def test_labels_at_a_larger_bound_are_a_subset(errors: list[float], one: float, other: float) -> None:
    count = len(errors)
    pairs = TrainingPairs(
        (), np.zeros(count, np.int64), np.arange(count), np.zeros((count, 0)), np.array(errors)
    )
    smaller, larger = sorted((one, other))
    assert not (pairs.labels(larger) & ~pairs.labels(smaller)).any()

"""Elements of rows by the columns that are chosen: no change of a row goes unseen, no order is seen."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lineage_service.triggering.changes.changed_elements import Elements, difference, row_keys, value_hashes
from lineage_service.triggering.learning.terms import Terms
from lineage_service.triggering.weighing import element_plans
from lineage_service.triggering.weighing.element_plans import (
    elements_by_plan,
    elements_of,
    places_of,
    plan_of_json,
    planned_inputs,
    planned_outputs,
)

TERMS = Terms(bound=0.1)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from("abcdefgh"),
            "n": st.integers(0, 5),
            "x": st.floats(0, 1) | st.none(),
            "note": st.text(max_size=2),
        }
    ),
    min_size=1,
    max_size=8,
)


def table(rows: list[dict[str, Any]]) -> pa.Table:
    kinds = {"name": pa.string(), "n": pa.int64(), "x": pa.float64(), "note": pa.string()}
    return pa.Table.from_pylist(rows, schema=pa.schema(kinds))


def bag(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


@given(ROWS, ROWS, st.randoms(use_true_random=False))
def test_elements_differ_where_rows_do_and_nowhere_else(
    before: list[dict[str, Any]], now: list[dict[str, Any]], chance: random.Random
) -> None:
    for choose in (planned_inputs, planned_outputs):
        plans, then = elements_by_plan({"/in": table(before)}, [], TERMS, choose)
        assert [plan_of_json(plan.to_json()) for plan in plans] == plans
        shuffled = chance.sample(before, len(before))
        same = elements_of(table(shuffled), plans[0])
        assert not len(difference(then["/in"], same))
        kept, after = elements_by_plan({"/in": table(now)}, plans, TERMS, choose)
        if kept == plans:  # else the key that was chosen does not tell these rows apart
            assert (len(difference(then["/in"], after["/in"])) == 0) == (bag(before) == bag(now))


@given(ROWS, st.integers(0, 3))
def test_each_row_is_the_element_that_its_key_says(rows: list[dict[str, Any]], halvings: int) -> None:
    of = table(rows)
    for plan in planned_inputs({"/in": of}, TERMS):
        kept = elements_of(of, replace(plan, halvings=halvings))
        expected = [
            next((at for at, own in enumerate(kept.keys.tolist()) if own == key), -1)
            for key in row_keys(of, plan.keys).tolist()
        ]
        for elements in (kept, Elements(kept.keys, kept.values)):
            places = places_of(of, plan, elements)
            assert (places is None) == (not len(kept))
            assert places is None or (places.dtype, places.tolist()) == (np.int32, expected)


@given(st.lists(st.integers(), unique=True, min_size=1, max_size=200), st.integers(1, 3))
def test_a_share_of_elements_is_the_same_each_wave(numbers: list[int], halvings: int) -> None:
    of = pa.table(
        {"id": [f"k{number}" for number in numbers], "x": [float(number % 7) for number in numbers]}
    )
    [plan] = planned_inputs({"/in": of}, TERMS)
    every, share = elements_of(of, plan), elements_of(of, replace(plan, halvings=halvings))
    assert set(share.keys.tolist()) <= set(every.keys.tolist())
    assert np.all(share.keys < np.uint64(1 << (64 - halvings)))
    half = of.slice(0, max(len(numbers) // 2, 1))
    part = elements_of(half, replace(plan, halvings=halvings))
    assert set(part.keys.tolist()) == set(share.keys.tolist()) & set(elements_of(half, plan).keys.tolist())


def test_more_elements_than_are_kept_are_halved(monkeypatch: Any) -> None:
    monkeypatch.setattr(element_plans, "MOST_ELEMENTS", 100)
    of = pa.table({"id": [f"k{number}" for number in range(450)], "x": np.arange(450.0)})
    [plan] = planned_inputs({"/in": of}, TERMS)
    assert plan.halvings == 3
    assert 20 < len(elements_of(of, plan)) < 100


@given(st.lists(st.binary(max_size=90) | st.text(max_size=20).map(str.encode) | st.none(), max_size=12))
def test_a_text_has_one_hash_wherever_it_stands(texts: list[bytes | None]) -> None:
    column = pa.table({"text": pa.array(texts, pa.binary())})
    hashes = value_hashes(column, "text").tolist()
    alone = [value_hashes(column.slice(at, 1), "text")[0] for at in range(len(texts))]
    assert hashes == alone
    assert len(set(hashes)) == len(set(texts))

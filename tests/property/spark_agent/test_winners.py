"""Winners of merges by key, against a merge that follows each value by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.serializers import CPickleSerializer

from spark_agent.worker.operators.adapters import Order
from spark_agent.worker.operators.aggregate import Combine, Functions, Merge
from tests.support.spark.one_task import run_chain

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "integers": st.integers(-3, 3) | st.integers(),
    "texts": st.text(max_size=3),
    "tuples": st.tuples(st.integers(0, 2), st.text(max_size=1)),
    "lists": st.lists(st.integers(0, 3), max_size=2),
}
MERGES: dict[str, Callable[[Any, Any], Any]] = {
    "smallest": min,
    "largest": max,
    "first": lambda one, _: one,
    "last": lambda _, other: other,
    "sum": lambda one, other: one + other,
    "sum of some": lambda one, other: one if one > other else one + other,
    "copy": lambda one, other: type(one)(max(one, other)),
}
CREATES: dict[str, Callable[[Any], Any]] = {
    "unchanged": lambda value: value,
    "twice": lambda value: value + value,
    "at least something": lambda value: max(value, type(value)()),
}


def by_hand(
    side: type[Combine], pairs: list[tuple[int, Any]], functions: Functions
) -> tuple[dict[int, Any], dict[int, int]]:
    """(value by key, winner by key), where every merge of a key gave one of its arguments."""
    values: dict[int, Any] = {}
    origins: dict[int, int | None] = {}
    counts: dict[int, int] = {}
    merges = new = 0
    for position, (key, value) in enumerate(pairs):
        counts[key] = counts.get(key, 0) + 1
        if key in values:
            merges += 1
            before, origin = values[key], origins[key]
            after = functions.mergeValue(before, value)
            is_taken = side is Merge or functions.createCombiner is CREATES["unchanged"]
            came_from = origin if after is before else position if after is value and is_taken else None
            origins[key] = None if origin is None else came_from
            new += after is not before and (after is not value or not is_taken)
        else:
            after = functions.createCombiner(value) if side is Combine else value
            origins[key] = position if after is value else None
            new += after is not value
        values[key] = after
    if 2 * new > merges:  # a function that does not choose
        return values, {}
    chosen = {key: origin for key, origin in origins.items() if origin is not None and counts[key] > 1}
    return values, {key: origin for key, origin in chosen.items() if not isinstance(values[key], list)}


@pytest.mark.parametrize("side", [Combine, Merge])
@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data())
def test_winners_are_those_of_a_merge_by_hand(side: type[Combine], kind: str, data: st.DataObject) -> None:
    pairs = data.draw(st.lists(st.tuples(st.integers(0, 4), VALUES[kind]), max_size=40))
    merge = data.draw(st.sampled_from(list(MERGES.values())))
    create = data.draw(st.sampled_from(list(CREATES.values())))
    functions = Functions(create, merge, merge)
    order = Order()
    ran = run_chain(pairs, side(functions, 1 << 20, CPickleSerializer(), order), order)
    values, wanted = by_hand(side, pairs, functions)
    assert ran.outputs == list(values.items())
    keys = list(values)
    assert {keys[output]: position for output, position in ran.winners(1).items()} == wanted
    origins = ran.origins(1)
    for output, position in ran.winners(1).items():
        assert position in origins[output]
        assert ran.outputs[output] == (keys[output], pairs[position][1])

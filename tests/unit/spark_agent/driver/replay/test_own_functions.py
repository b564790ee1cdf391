"""Functions of a program that run in the driver: its accumulators stay as they are."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark import Accumulator, AccumulatorParam, Broadcast
from pyspark.accumulators import _accumulatorRegistry

from spark_agent.driver.recipes import Recipe
from spark_agent.driver.replay.local_evaluation import NotLocalError, influence
from spark_agent.driver.replay.own_functions import (
    HeldBroadcastError,
    accumulators_of,
    own_function,
    unchanged,
)
from spark_agent.driver.replay.recipe_steps import steps_of


class Added(AccumulatorParam[Any]):
    """Adds in place."""

    def zero(self, value: Any) -> Any:
        return []

    def addInPlace(self, value1: Any, value2: Any) -> Any:
        value1 += value2
        return value1


@pytest.fixture
def accumulator() -> Iterator[Any]:
    before = dict(_accumulatorRegistry)
    yield Accumulator(77_001, ["first"], Added())
    _accumulatorRegistry.clear()
    _accumulatorRegistry.update(before)


def counting(accumulator: Any) -> Callable[[str], tuple[str, int]]:
    def pair(line: str) -> tuple[str, int]:
        accumulator.add([line])
        return line[0], 1

    return pair


def test_a_copy_adds_to_an_accumulator_of_its_own(accumulator: Any) -> None:
    own = own_function(counting(accumulator))
    assert own("a1") == ("a", 1)
    assert accumulator.value == ["first"]
    assert _accumulatorRegistry[77_001] is accumulator


def test_a_copy_has_one_accumulator_where_the_function_has_one(accumulator: Any) -> None:
    same = accumulator
    own = own_function(lambda line: (accumulator.add([line]), same)[1])
    assert own("a1")._value == ["a1"]
    assert own("a2")._value == ["a1", "a2"]
    assert accumulator.value == ["first"]


def test_an_influence_changes_no_accumulator(accumulator: Any) -> None:
    source = Recipe(0, "textFile", source=object())
    pairs = Recipe(1, "map", (source,), {"f": counting(accumulator)})
    sums = Recipe(2, "reduceByKey", (pairs,), {"func": lambda one, other: one + other})
    _, steps = steps_of(sums)
    assert influence(steps, ["a1", "a2", "a3"], "('a', 3)") == ["('a', 2)"] * 3
    assert accumulator.value == ["first"]


def test_the_accumulators_of_functions_are_found_and_kept(accumulator: Any) -> None:
    lock = threading.Lock()
    functions = [len, lambda line: (lock, line), counting(accumulator), counting(accumulator)]
    accumulators = accumulators_of(functions)
    assert len(accumulators) == 1
    assert accumulators[0] is accumulator
    with unchanged(accumulators):
        accumulator.add(["more"])
    assert accumulator.value == ["first"]


def test_a_function_with_a_broadcast_variable_is_for_executors() -> None:
    broadcast = object.__new__(Broadcast)

    def looked_up(line: str) -> Any:
        return broadcast.value[line]

    with pytest.raises(HeldBroadcastError):
        own_function(looked_up)
    recipe = Recipe(1, "map", (Recipe(0, "textFile", source=object()),), {"f": looked_up})
    with pytest.raises(NotLocalError, match="a broadcast variable"):
        steps_of(recipe)

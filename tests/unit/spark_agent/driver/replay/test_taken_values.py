"""What counts as a value that Spark has given the program."""

from __future__ import annotations

import pytest
from pyspark.accumulators import INT_ACCUMULATOR_PARAM, Accumulator
from pyspark.sql import Row
from pyspark.sql.types import StructType

from spark_agent.driver.monkeypatch import Patches, frame_class
from spark_agent.driver.replay.taken_values import TakenValues


def test_an_accumulator_that_is_read_is_noticed_until_the_patches_are_undone() -> None:
    taken, patches = TakenValues(), Patches()
    original = vars(Accumulator)["value"]
    taken.watch(patches)
    accumulator = Accumulator(901, 1, INT_ACCUMULATOR_PARAM)
    accumulator += 2
    assert taken.names == []
    accumulator.value = 7
    assert accumulator.value == 7
    assert taken.names == ["an accumulator"]
    patches.undo()
    assert vars(Accumulator)["value"] is original


@pytest.mark.parametrize(
    ("result", "is_value"),
    [
        (3, True),
        ([Row(a=1)], True),
        (Row(a=1), True),
        ([], True),
        (iter(()), True),
        (None, False),
        (StructType(), False),
        ([StructType()], False),
    ],
)
def test_a_method_of_a_frame_gives_a_value_or_something_for_spark(result: object, is_value: bool) -> None:
    taken, patches = TakenValues(), Patches()
    patches.replace(frame_class(), "count", lambda frame: result)
    original = vars(frame_class())["count"]
    taken.watch(patches)
    try:
        assert frame_class().count(None) is result
    finally:
        patches.undo()
    assert original is not vars(frame_class())["count"]
    assert taken.names == (["count"] if is_value else [])


def test_an_action_is_noticed_by_its_name() -> None:
    taken = TakenValues()
    taken.add("take")
    taken.add("count")
    assert taken.names == ["count", "take"]

"""What an RDD is made of when it is made again; without Spark."""

from __future__ import annotations

from itertools import chain

import pytest

from spark_agent.driver.recipes import Recipe
from spark_agent.driver.replay.rebuilt_rdds import in_few_parts, operation_by_places


@pytest.mark.parametrize(("count", "parts"), [(0, 0), (1, 1), (8, 8), (9, 5), (16, 8), (30, 8), (1_000, 8)])
def test_lines_of_many_partitions_come_in_few_in_their_order(count: int, parts: int) -> None:
    lines = [[f"{part}.{line}" for line in range(part % 3 + 1)] for part in range(count)]
    few = in_few_parts(lines)
    assert len(few) == parts
    assert list(chain.from_iterable(few)) == list(chain.from_iterable(lines))


def test_the_operation_that_depends_on_places_is_named() -> None:
    source = Recipe(0, "textFile", source=object())
    mapped = Recipe(1, "map", (source, len))
    assert operation_by_places(mapped) is None
    numbered = Recipe(3, "map", (Recipe(2, "zipWithIndex", (mapped,)), len))
    assert operation_by_places(Recipe(4, "union", (mapped, numbered))) == "zipWithIndex"

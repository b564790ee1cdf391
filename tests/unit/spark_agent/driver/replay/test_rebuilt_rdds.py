"""What an RDD is made of when it is made again; without Spark."""

from __future__ import annotations

from spark_agent.driver.recipes import Recipe
from spark_agent.driver.replay.rebuilt_rdds import operation_by_places


def test_the_operation_that_depends_on_places_is_named() -> None:
    source = Recipe(0, "textFile", source=object())
    mapped = Recipe(1, "map", (source, len))
    assert operation_by_places(mapped) is None
    numbered = Recipe(3, "map", (Recipe(2, "zipWithIndex", (mapped,)), len))
    assert operation_by_places(Recipe(4, "union", (mapped, numbered))) == "zipWithIndex"

"""The operations of a recipe as steps in the driver, against loops."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from operator import add
from typing import Any

import pytest

from spark_agent.driver.recipes import Recipe
from spark_agent.driver.replay.local_evaluation import NotLocalError, influence
from spark_agent.driver.replay.recipe_steps import steps_of

SOURCE = Recipe(0, "textFile", source=object())
LINES = ["a,1", "a,2", "b,7", "a,4"]

Operations = list[tuple[str, dict[str, Any]]]


def recipe_of(operations: Operations) -> Recipe:
    recipe = SOURCE
    for name, keywords in operations:
        recipe = Recipe(recipe.number + 1, name, (recipe,), keywords)
    return recipe


def fields(line: str) -> tuple[str, int]:
    key, number = line.split(",")
    return key, int(number)


def shown(pair: tuple[str, Any]) -> str:
    return f"{pair[0]};{pair[1]}"


def groups(lines: Sequence[str]) -> dict[str, list[int]]:
    lists: dict[str, list[int]] = defaultdict(list)
    for key, number in map(fields, lines):
        lists[key].append(number)
    return lists


PAIRS: Operations = [("map", {"f": fields})]
ROWS: Operations = [("map", {"f": shown})]
JOBS: dict[str, tuple[Operations, Callable[[list[int]], Any]]] = {
    "reduceByKey": ([("reduceByKey", {"func": add, "numPartitions": 2})], sum),
    "foldByKey": ([("foldByKey", {"zeroValue": 0, "func": add})], sum),
    "aggregateByKey": (
        [
            (
                "aggregateByKey",
                {"zeroValue": [], "seqFunc": lambda of, one: [*of, one], "combFunc": add},
            ),
            ("mapValues", {"f": sorted}),
        ],
        sorted,
    ),
    "combineByKey": (
        [
            (
                "combineByKey",
                {
                    "createCombiner": lambda value: (value, 1),
                    "mergeValue": lambda of, one: (of[0] + one, of[1] + 1),
                    "mergeCombiners": lambda one, other: (one[0] + other[0], one[1] + other[1]),
                },
            )
        ],
        lambda values: (sum(values), len(values)),
    ),
    "groupByKey": ([("groupByKey", {}), ("mapValues", {"f": max})], max),
    "len of a group": ([("groupByKey", {}), ("mapValues", {"f": len})], len),
    "groupBy": (
        [
            ("groupBy", {"f": lambda pair: pair[0]}),
            ("mapValues", {"f": lambda pairs: sum(value for _, value in pairs)}),
        ],
        sum,
    ),
    "flatMapValues": (
        [("flatMapValues", {"f": lambda value: [value, value]}), ("reduceByKey", {"func": add})],
        lambda values: 2 * sum(values),
    ),
    "moved": (
        [
            ("repartition", {"numPartitions": 3}),
            ("sortBy", {"keyfunc": lambda pair: pair[1]}),
            ("filter", {"f": lambda pair: pair[1] < 9}),
            ("reduceByKey", {"func": max}),
        ],
        max,
    ),
    "distinct": (
        [("distinct", {}), ("map", {"f": lambda pair: (pair[0], 1)}), ("reduceByKey", {"func": add})],
        len,
    ),
}


@pytest.mark.parametrize("name", JOBS)
def test_the_steps_of_a_recipe_do_what_its_operations_do(name: str) -> None:
    operations, of_values = JOBS[name]
    source, steps = steps_of(recipe_of([*PAIRS, *operations, *ROWS]))
    assert source is SOURCE

    def text(lines: Sequence[str]) -> str | None:
        values = groups(lines).get("a")
        return None if values is None else f"a;{of_values(values)}"

    of_key = [line for line in LINES if line.startswith("a")]
    expected = [text([*of_key[:at], *of_key[at + 1 :]]) for at in range(len(of_key))]
    assert influence(steps, of_key, text(of_key) or "") == expected


def test_flat_maps_keys_and_values() -> None:
    operations: Operations = [
        ("flatMap", {"f": str.split}),
        ("keyBy", {"f": len}),
        ("values", {}),
        ("keyBy", {"f": len}),
        ("keys", {}),
    ]
    _, steps = steps_of(recipe_of(operations))
    records: Any = ["aa b", "ccc"]
    for step in steps:
        assert callable(step)
        records = list(step(0, records))
    assert records == [2, 1, 3]


@pytest.mark.parametrize(
    ("recipe", "why"),
    [
        (recipe_of([("zipWithIndex", {})]), "zipWithIndex is none of map"),
        (Recipe(3, "union", ([SOURCE, SOURCE],)), "union has several inputs"),
        (Recipe(3, "join", (SOURCE, recipe_of(PAIRS))), "join has several inputs"),
    ],
)
def test_what_is_not_followed_is_named(recipe: Recipe, why: str) -> None:
    with pytest.raises(NotLocalError, match=why):
        steps_of(recipe)

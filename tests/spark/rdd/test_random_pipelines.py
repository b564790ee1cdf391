"""Random pipelines over two small files: every trace equals that of the naive interpreter.

A pipeline is a list of steps. Each step turns pairs (text, number) into pairs, so that any may follow any.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.support.spark import naive_interpreter as naive
from tests.support.spark.application import check_against, run_application
from tests.support.spark.naive_interpreter import Data

#: Joins of joins grow fast; every row of the output is traced.
MOST_ROWS = 40

Pair = tuple[str, int]


def changed(n: int, kv: Pair) -> Pair:
    return "abcd"[(ord(kv[0]) + n) % 4], kv[1] + n


def is_kept(n: int, kv: Pair) -> bool:
    return kv[1] % (n + 2) != 0


def copies(n: int, kv: Pair) -> list[Pair]:
    return [(kv[0], kv[1] + i) for i in range((kv[1] + n) % 3)]


def lazily(n: int, kv: Pair) -> Any:
    return (kv for _ in range((kv[1] + n) % 3))


def is_last(n: int, kv: Pair) -> bool:
    return kv[1] % 5 == n % 5


def paired(pairs: tuple[Pair, Pair]) -> Pair:
    (key, value), (_, other) = pairs
    return key, value + other


@dataclass(frozen=True)
class Operation:
    """How a step is taken in Spark and naively: (data, the other data, n) -> data."""

    in_spark: Callable[[Any, Any, int], Any]
    naively: Callable[[Data, Data, int], Data]


def same(data: Data, _other: Data, _n: int) -> Data:
    return data


OPERATIONS = {
    "map": Operation(
        lambda data, _, n: data.map(partial(changed, n)),
        lambda data, _, n: naive.map_(data, partial(changed, n)),
    ),
    "filter": Operation(
        lambda data, _, n: data.filter(partial(is_kept, n)),
        lambda data, _, n: naive.filter_(data, partial(is_kept, n)),
    ),
    "flatMap": Operation(
        lambda data, _, n: data.flatMap(partial(copies, n)),
        lambda data, _, n: naive.flat_map(data, partial(copies, n)),
    ),
    "flatMap of generators": Operation(
        lambda data, _, n: data.flatMap(partial(lazily, n)),
        lambda data, _, n: naive.flat_map(data, partial(lazily, n)),
    ),
    "mapValues": Operation(
        lambda data, _, n: data.mapValues(n.__add__),
        lambda data, _, n: naive.map_values(data, n.__add__),
    ),
    "reduceByKey": Operation(
        lambda data, _, n: data.reduceByKey(operator.add, 1 + n % 3),
        lambda data, _, n: naive.reduce_by_key(data, operator.add),
    ),
    "join": Operation(
        lambda data, other, n: data.join(other, 1 + n % 3).mapValues(sum),
        lambda data, other, _: naive.map_values(naive.join(data, other), sum),
    ),
    "join of itself": Operation(
        lambda data, _, n: data.join(data.filter(partial(is_kept, n))).mapValues(sum),
        lambda data, _, n: naive.map_values(
            naive.join(data, naive.filter_(data, partial(is_kept, n))), sum
        ),
    ),
    "union": Operation(lambda data, other, _: data.union(other), lambda data, other, _: data + other),
    "union of itself": Operation(lambda data, _, n: data.union(data), lambda data, _, n: data + data),
    "distinct": Operation(lambda data, _, n: data.distinct(), lambda data, _, n: naive.distinct(data)),
    "sortBy": Operation(
        lambda data, _, n: data.sortBy(operator.itemgetter(n % 2), n % 3 != 0, 1 + n % 3), same
    ),
    "partitionBy": Operation(lambda data, _, n: data.partitionBy(1 + n % 3), same),
    "coalesce": Operation(lambda data, _, n: data.coalesce(1 + n % 3), same),
    "repartition": Operation(lambda data, _, n: data.repartition(1 + n % 3), same),
    "groupByKey": Operation(
        lambda data, _, n: data.groupByKey(1 + n % 3).mapValues(sum),
        lambda data, _, n: naive.reduce_by_key(data, operator.add),
    ),
    "subtractByKey": Operation(
        lambda data, other, n: data.subtractByKey(other.filter(partial(is_kept, n)), 2),
        lambda data, other, n: naive.subtract_by_key(data, naive.filter_(other, partial(is_kept, n))),
    ),
    "cartesian": Operation(
        lambda data, other, n: data.cartesian(other.filter(partial(is_last, n))).map(paired),
        lambda data, other, n: naive.map_(
            naive.product(data, naive.filter_(other, partial(is_last, n))), paired
        ),
    ),
    "zip of itself": Operation(
        lambda data, _, n: data.zip(data.mapValues(n.__add__)).map(paired),
        lambda data, _, n: naive.map_(data, lambda kv: paired((kv, (kv[0], kv[1] + n)))),
    ),
    "mapPartitions": Operation(
        lambda data, _, n: data.mapPartitions(lambda it: (changed(n, kv) for kv in it if is_kept(n, kv))),
        lambda data, _, n: naive.map_(naive.filter_(data, partial(is_kept, n)), partial(changed, n)),
    ),
    "cache": Operation(lambda data, _, n: data.cache(), same),
}  # fmt: skip

Steps = list[tuple[str, int]]

LEFT = [f"{'abc'[i % 3]} {i}" for i in range(8)]
RIGHT = [f"{'bcd'[i % 3]} {i * 3}" for i in range(5)]


def pair(line: str) -> Pair:
    key, value = line.split()
    return key, int(value)


def take_naively(steps: Steps, left: Data, right: Data) -> Data:
    for name, n in steps:
        left = OPERATIONS[name].naively(left, right, n)
    return left


@st.composite
def pipelines(draw: st.DrawFn) -> Steps:
    steps: Steps = []
    left, right = ([(pair(line), frozenset()) for line in lines] for lines in (LEFT, RIGHT))
    for name in draw(st.permutations(sorted(OPERATIONS)))[: draw(st.integers(3, 8))]:
        step = (name, draw(st.integers(0, 5)))
        made = take_naively([step], left, right)
        if 0 < len(made) <= MOST_ROWS:
            steps.append(step)
            left = made
    return steps


def examples(count: int) -> Callable[[Any], Any]:
    return settings(
        max_examples=count,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


@examples(1)
@given(steps=pipelines())
def test_some_traces_equal_the_naive_interpreters(
    steps: Steps, kafka: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    check(steps, kafka, tmp_path_factory)


@pytest.mark.thorough
@pytest.mark.timeout(2700)
@examples(20)
@given(steps=pipelines())
def test_many_traces_equal_the_naive_interpreters(
    steps: Steps, kafka: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    check(steps, kafka, tmp_path_factory)


def check(steps: Steps, kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("pipeline")
    paths = folder / "left.txt", folder / "right.txt"
    for path, lines in zip(paths, (LEFT, RIGHT), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines))

    def job(context: Any) -> None:
        left, right = (context.textFile(str(path), 3).map(pair) for path in paths)
        for name, n in steps:
            left = OPERATIONS[name].in_spark(left, right, n)
        left.map(repr).saveAsTextFile(str(folder / "out"))

    _, application = run_application(kafka.bootstrap_servers, folder / "store", job)
    assert application is not None
    expected = take_naively(steps, *(naive.map_(naive.text_file(path), pair) for path in paths))
    files = {file for _, sources in expected for file, _ in sources}
    check_against(
        application,
        folder / "out",
        [path for path in paths if path.name in files],
        Counter((repr(value), sources) for value, sources in expected),
    )

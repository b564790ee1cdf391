"""Random pipelines over small data: each one application, compared with the naive interpreter."""

from __future__ import annotations

import operator
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.spark import naive
from tests.spark.application import check_against, run_application
from tests.spark.naive import Data

# name -> (in Spark, naively); both take (data, other), datasets of (key, int), and give one.
STEPS: dict[str, tuple[Callable[..., Any], Callable[[Data, Data], Data]]] = {
    "map": (
        lambda data, other: data.map(lambda kv: (kv[0], kv[1] + 1)),
        lambda data, other: naive.map_(data, lambda kv: (kv[0], kv[1] + 1)),
    ),
    "filter": (
        lambda data, other: data.filter(lambda kv: kv[1] % 3 != 0),
        lambda data, other: naive.filter_(data, lambda kv: kv[1] % 3 != 0),
    ),
    "flatMap": (
        lambda data, other: data.flatMap(lambda kv: [kv] * (kv[1] % 3)),
        lambda data, other: naive.flat_map(data, lambda kv: [kv] * (kv[1] % 3)),
    ),
    "mapValues": (
        lambda data, other: data.mapValues(lambda value: value * 2 + 1),
        lambda data, other: naive.map_values(data, lambda value: value * 2 + 1),
    ),
    "reduceByKey": (
        lambda data, other: data.reduceByKey(operator.add),
        lambda data, other: naive.reduce_by_key(data, operator.add),
    ),
    "join": (
        lambda data, other: data.join(other, 2).mapValues(sum),
        lambda data, other: naive.map_values(naive.join(data, other), sum),
    ),
    "leftOuterJoin": (
        lambda data, other: data.leftOuterJoin(other).mapValues(lambda pair: pair[0] + (pair[1] or 0)),
        lambda data, other: naive.map_values(
            naive.join(data, other, keep_left=True), lambda pair: pair[0] + (pair[1] or 0)
        ),
    ),
    "union": (
        lambda data, other: data.union(other),
        lambda data, other: data + other,
    ),
    "distinct": (
        lambda data, other: data.distinct(),
        lambda data, other: naive.distinct(data),
    ),
    "sortBy": (
        lambda data, other: data.sortBy(lambda kv: (kv[1], kv[0]), numPartitions=2),
        lambda data, other: data,
    ),
    "coalesce": (
        lambda data, other: data.coalesce(2),
        lambda data, other: data,
    ),
    "cache": (
        lambda data, other: data.cache(),
        lambda data, other: data,
    ),
}


@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    steps=st.lists(st.sampled_from(sorted(STEPS)), min_size=3, max_size=8).filter(
        # Each of these may multiply the rows, and every output row is traced.
        lambda names: sum(name in ("join", "leftOuterJoin", "union", "flatMap") for name in names) <= 2
    ),
    left=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), min_size=1, max_size=9),
    right=st.lists(st.tuples(st.sampled_from("bcd"), st.integers(0, 9)), max_size=4),
)
def test_random_pipelines_equal_the_naive_interpreter(
    kafka: Any, steps: list[str], left: list[tuple[str, int]], right: list[tuple[str, int]]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = [folder / "left.txt", folder / "right.txt"]
        for path, rows in zip(paths, (left, right), strict=True):
            path.write_text("".join(f"{key} {value}\n" for key, value in rows))

        def job(context: Any) -> None:
            data, other = (context.textFile(str(path), 3).map(pair) for path in paths)
            for step in steps:
                data = STEPS[step][0](data, other)
            data.map(repr).saveAsTextFile(str(folder / "out"))

        data, other = (naive.map_(naive.text_file(path), pair) for path in paths)
        for step in steps:
            data = STEPS[step][1](data, other)
        expected = Counter((repr(value), sources) for value, sources in data)
        _, application = run_application(kafka.bootstrap_servers, folder / "store", job)
        assert application is not None
        check_against(application, folder / "out", [paths[0]], expected)


def pair(line: str) -> tuple[str, int]:
    key, value = line.split()
    return key, int(value)

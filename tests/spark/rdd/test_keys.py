"""Keys of every kind that Python can hash, through every operation that meets by key."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.lanes import sampled, selected
from tests.support.spark import naive_interpreter as naive
from tests.support.spark.naive_interpreter import Data
from tests.support.spark.pipelines import Pipeline, Traced, trace_pipelines

pytestmark = pytest.mark.thorough


@dataclass(frozen=True)
class Place:
    town: str
    number: int


KEYS: list[Any] = [
    "plain", "a#b", "c,d", 'e"f', "it's", "line\nbreak", "ünïcödé \U0001f30d", "",
    0, -7, 2**70, 1, 1.0, True, 2.5, None, (), ("a", 1, None), ("a", ("b", 2.0)), b"", b"\x00\xff#",
    Place("a#b", 1), Place("a#b", 2),
]  # fmt: skip


def keyed(kv: tuple[str, int]) -> tuple[Any, int]:
    return KEYS[(kv[1] * 5 + len(kv[0])) % len(KEYS)], kv[1]


def shown(kv: tuple[Any, Any]) -> tuple[str, Any]:
    """Equal keys of different types are one key; which of them stands for it depends on the order."""
    return repr(1 if kv[0] == 1 else kv[0]), kv[1]


def both(left: Any, right: Any) -> tuple[Any, Any]:
    return left.union(left.mapValues(lambda v: v + 1)).map(keyed), right.union(left).map(keyed)


def naive_both(left: Data, right: Data) -> tuple[Data, Data]:
    more = naive.map_values(left, lambda v: v + 1)
    return naive.map_(left + more, keyed), naive.map_(right + left, keyed)


def pipeline(in_spark: Any, naively: Any) -> Pipeline:
    return (
        lambda left, right: in_spark(*both(left, right)).map(shown),
        lambda left, right: naive.map_(naively(*naive_both(left, right)), shown),
    )


PIPELINES: dict[str, Pipeline] = {
    "reduceByKey": pipeline(
        lambda left, right: left.reduceByKey(operator.add, 3),
        lambda left, right: naive.reduce_by_key(left, operator.add),
    ),
    "groupByKey": pipeline(
        lambda left, right: left.groupByKey(2).mapValues(sorted),
        lambda left, right: naive.group_by_key(left),
    ),
    "join": pipeline(
        lambda left, right: left.join(right, 3),
        lambda left, right: naive.join(left, right),
    ),
    "fullOuterJoin": pipeline(
        lambda left, right: left.filter(lambda kv: kv[1] > 4).fullOuterJoin(
            right.filter(lambda kv: kv[1] < 8)
        ),
        lambda left, right: naive.join(
            naive.filter_(left, lambda kv: kv[1] > 4),
            naive.filter_(right, lambda kv: kv[1] < 8),
            keep_left=True,
            keep_right=True,
        ),
    ),
    "cogroup": pipeline(
        lambda left, right: left.cogroup(right).mapValues(lambda sides: [sorted(side) for side in sides]),
        lambda left, right: naive.cogroup(left, right),
    ),
    "subtractByKey": pipeline(
        lambda left, right: left.subtractByKey(right.filter(lambda kv: kv[1] % 2 == 0)),
        lambda left, right: naive.subtract_by_key(left, naive.filter_(right, lambda kv: kv[1] % 2 == 0)),
    ),
    "distinct": pipeline(
        lambda left, right: left.keys().distinct().map(lambda key: (key, 0)),
        lambda left, right: naive.map_(
            naive.distinct(naive.map_(left, operator.itemgetter(0))), lambda key: (key, 0)
        ),
    ),
    "partitionBy": pipeline(
        lambda left, right: left.partitionBy(4),
        lambda left, right: left,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def traced(request: pytest.FixtureRequest, kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Traced:
    return trace_pipelines(kafka, tmp_path_factory.mktemp("keys"), selected(request, PIPELINES))


@pytest.mark.parametrize("name", sampled(PIPELINES, 4))
def test_traces_by_keys_of_every_kind_equal_the_naive_interpreters(name: str, traced: Traced) -> None:
    traced.check(name)

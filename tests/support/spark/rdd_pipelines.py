"""Pipelines of RDDs, each in Spark and by the naive interpreter: (left, right) are datasets of (key, int)."""

from __future__ import annotations

import operator
from typing import Any

from tests.support.spark import naive_interpreter as naive
from tests.support.spark.pipelines import Pipeline


def branches(dataset: Any) -> Any:
    return dataset.union(dataset.filter(lambda kv: kv[1] % 2 == 0))


# name -> (in Spark, naively); both take (left, right), datasets of (key, int).
PIPELINES: dict[str, Pipeline] = {
    "map": (
        lambda left, right: left.map(lambda kv: (kv[0], kv[1] + 1)),
        lambda left, right: naive.map_(left, lambda kv: (kv[0], kv[1] + 1)),
    ),
    "filter": (
        lambda left, right: left.filter(lambda kv: kv[1] % 3 == 0),
        lambda left, right: naive.filter_(left, lambda kv: kv[1] % 3 == 0),
    ),
    "filter that passes nothing": (
        lambda left, right: left.filter(lambda kv: False),
        lambda left, right: [],
    ),
    "flatMap of lists": (
        lambda left, right: left.flatMap(lambda kv: [kv] * (kv[1] % 4)),
        lambda left, right: naive.flat_map(left, lambda kv: [kv] * (kv[1] % 4)),
    ),
    "flatMap of generators": (
        lambda left, right: left.flatMap(lambda kv: (kv for _ in range(kv[1] % 3))),
        lambda left, right: naive.flat_map(left, lambda kv: [kv] * (kv[1] % 3)),
    ),
    "mapValues and keyBy": (
        lambda left, right: left.mapValues(lambda v: v * 2).keyBy(lambda kv: kv[1] % 2),
        lambda left, right: naive.map_(left, lambda kv: (kv[1] * 2 % 2, (kv[0], kv[1] * 2))),
    ),
    "flatMapValues": (
        lambda left, right: left.flatMapValues(lambda v: range(v % 3)),
        lambda left, right: naive.flat_map(left, lambda kv: [(kv[0], x) for x in range(kv[1] % 3)]),
    ),
    "reduceByKey": (
        lambda left, right: left.reduceByKey(operator.add),
        lambda left, right: naive.reduce_by_key(left, operator.add),
    ),
    "distinct": (
        lambda left, right: left.map(lambda kv: kv[1] % 5).distinct(),
        lambda left, right: naive.distinct(naive.map_(left, lambda kv: kv[1] % 5)),
    ),
    "join": (
        lambda left, right: left.join(right),
        lambda left, right: naive.join(left, right),
    ),
    "join of itself": (
        lambda left, right: left.join(left.mapValues(lambda v: -v), 2),
        lambda left, right: naive.join(left, naive.map_values(left, lambda v: -v)),
    ),
    "leftOuterJoin": (
        lambda left, right: left.leftOuterJoin(right),
        lambda left, right: naive.join(left, right, keep_left=True),
    ),
    "rightOuterJoin": (
        lambda left, right: left.rightOuterJoin(right),
        lambda left, right: naive.join(left, right, keep_right=True),
    ),
    "fullOuterJoin": (
        lambda left, right: left.fullOuterJoin(right),
        lambda left, right: naive.join(left, right, keep_left=True, keep_right=True),
    ),
    "union": (
        lambda left, right: left.union(right).union(left),
        lambda left, right: left + right + left,
    ),
    "sortBy into one partition": (
        lambda left, right: left.sortBy(lambda kv: -kv[1], numPartitions=1),
        lambda left, right: left,
    ),
    "sortBy into several partitions": (
        lambda left, right: left.sortBy(lambda kv: kv[1], ascending=False, numPartitions=3),
        lambda left, right: left,
    ),
    "sortByKey of equal keys": (
        lambda left, right: left.map(lambda kv: (kv[1] % 2, kv)).sortByKey(numPartitions=2),
        lambda left, right: naive.map_(left, lambda kv: (kv[1] % 2, kv)),
    ),
    "coalesce": (
        lambda left, right: left.union(right).coalesce(2).map(lambda kv: kv),
        lambda left, right: left + right,
    ),
    "cache, read by two branches": (
        lambda left, right: branches(left.map(lambda kv: kv).cache()),
        lambda left, right: left + naive.filter_(left, lambda kv: kv[1] % 2 == 0),
    ),
    "shuffle behind shuffle behind join": (
        lambda left, right: left.reduceByKey(operator.add)
        .join(right)
        .mapValues(sum)
        .sortBy(lambda kv: kv[0])
        .map(lambda kv: (kv[1] % 2, kv[1]))
        .reduceByKey(max),
        lambda left, right: naive.reduce_by_key(
            naive.map_(
                naive.map_values(naive.join(naive.reduce_by_key(left, operator.add), right), sum),
                lambda kv: (kv[1] % 2, kv[1]),
            ),
            max,
        ),
    ),
}  # fmt: skip

"""Pipelines that group, pair, move and choose records, in Spark and by the naive interpreter."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

from tests.support.spark import naive_interpreter as naive
from tests.support.spark.naive_interpreter import Data
from tests.support.spark.pipelines import Pipeline, pair


def row_by_row(records: Iterator[Any]) -> Iterator[Any]:
    for key, value in records:
        if value % 3:
            yield key, -value
        for i in range(value % 2):
            yield key, i


def in_rows(kv: tuple[str, int]) -> list[Any]:
    return [*([(kv[0], -kv[1])] if kv[1] % 3 else []), *((kv[0], i) for i in range(kv[1] % 2))]


def sides_shown(kv: Any) -> Any:
    return kv[0], [sorted(side) for side in kv[1]]


def numbers(dataset: Any) -> Any:
    return dataset.map(lambda kv: kv[1] % 6)


def naive_numbers(data: Data) -> Data:
    return naive.map_(data, lambda kv: kv[1] % 6)


# name -> (in Spark, naively); both take (left, right), datasets of (key, int).
PIPELINES: dict[str, Pipeline] = {
    "groupByKey": (
        lambda left, right: left.groupByKey().mapValues(sorted),
        lambda left, right: naive.group_by_key(left),
    ),
    "groupBy": (
        lambda left, right: left.groupBy(lambda kv: kv[1] % 4, 3).mapValues(sorted),
        lambda left, right: naive.group_by_key(naive.map_(left, lambda kv: (kv[1] % 4, kv))),
    ),
    "aggregateByKey and foldByKey": (
        lambda left, right: left.aggregateByKey(0, lambda a, v: a + v, operator.add)
        .union(right.foldByKey(1, operator.mul).mapValues(lambda v: v > 0)),
        lambda left, right: naive.reduce_by_key(left, operator.add)
        + naive.map_values(naive.reduce_by_key(right, operator.mul), lambda v: v > 0),
    ),
    "keys and values": (
        lambda left, right: left.keys().union(right.values()),
        lambda left, right: naive.map_(left, lambda kv: kv[0]) + naive.map_(right, lambda kv: kv[1]),
    ),
    "cogroup": (
        lambda left, right: left.cogroup(right, 3).map(sides_shown),
        lambda left, right: naive.cogroup(left, right),
    ),
    "groupWith of three": (
        lambda left, right: left.groupWith(right, left.filter(lambda kv: kv[1] > 5)).map(sides_shown),
        lambda left, right: naive.cogroup(left, right, naive.filter_(left, lambda kv: kv[1] > 5)),
    ),
    "subtractByKey": (
        lambda left, right: left.subtractByKey(right, 2),
        lambda left, right: naive.subtract_by_key(left, right),
    ),
    "subtract": (
        lambda left, right: numbers(left).subtract(numbers(right).filter(lambda v: v % 2 == 0)),
        lambda left, right: [
            (value, sources)
            for value, sources in naive_numbers(left)
            if value not in {v for v, _ in naive_numbers(right) if v % 2 == 0}
        ],
    ),
    "intersection": (
        lambda left, right: numbers(left).intersection(numbers(right)),
        lambda left, right: naive.intersection(naive_numbers(left), naive_numbers(right)),
    ),
    "cartesian": (
        lambda left, right: left.filter(lambda kv: kv[1] < 3).cartesian(right.filter(lambda kv: kv[1] < 7)),
        lambda left, right: naive.product(
            naive.filter_(left, lambda kv: kv[1] < 3), naive.filter_(right, lambda kv: kv[1] < 7)
        ),
    ),
    "cartesian of itself, twice": (
        lambda left, right: right.cartesian(right).cartesian(right.filter(lambda kv: kv[1] == 5)),
        lambda left, right: naive.product(
            naive.product(right, right), naive.filter_(right, lambda kv: kv[1] == 5)
        ),
    ),
    "zip": (
        lambda left, right: left.zip(left.map(lambda kv: kv[1])),
        lambda left, right: naive.map_(left, lambda kv: (kv, kv[1])),
    ),
    "zip of shuffles": (
        lambda left, right: numbers(left).repartition(1).zip(numbers(left).repartition(1)).map(lambda v: 0),
        lambda left, right: naive.map_(left, lambda kv: 0),
    ),
    "zipWithIndex": (
        lambda left, right: left.zipWithIndex(),
        lambda left, right: [((kv, i), sources) for i, (kv, sources) in enumerate(left)],
    ),
    "zipWithUniqueId": (
        lambda left, right: left.zipWithUniqueId().keys(),
        lambda left, right: left,
    ),
    "repartition": (
        lambda left, right: left.repartition(3),
        lambda left, right: left,
    ),
    "repartition, twice, of a union": (
        lambda left, right: left.union(right).repartition(4).repartition(2),
        lambda left, right: left + right,
    ),
    "coalesce with a shuffle": (
        lambda left, right: left.coalesce(2, shuffle=True).map(lambda kv: kv),
        lambda left, right: left,
    ),
    "repartition of a file": (
        lambda left, right: left.lines.repartition(2).map(pair),
        lambda left, right: left,
    ),
    "repartitionAndSortWithinPartitions": (
        lambda left, right: left.map(lambda kv: (kv[1], kv[0])).repartitionAndSortWithinPartitions(2),
        lambda left, right: naive.map_(left, lambda kv: (kv[1], kv[0])),
    ),
    "partitionBy": (
        lambda left, right: left.partitionBy(3),
        lambda left, right: left,
    ),
    "glom of a coalesce": (
        lambda left, right: left.coalesce(1).glom().map(sorted),
        lambda left, right: [(sorted(kv for kv, _ in left), frozenset().union(*(s for _, s in left)))],
    ),
    "mapPartitions, row by row": (
        lambda left, right: left.mapPartitions(row_by_row).mapPartitions(lambda it: map(str, it)),
        lambda left, right: naive.map_(naive.flat_map(left, in_rows), str),
    ),
    "mapPartitionsWithIndex, row by row": (
        lambda left, right: left.mapPartitionsWithIndex(lambda i, it: (kv for kv in it if kv[1] > 2)),
        lambda left, right: naive.filter_(left, lambda kv: kv[1] > 2),
    ),
    "checkpoint": (
        lambda left, right: checkpointed(left.map(lambda kv: kv)).map(lambda kv: kv),
        lambda left, right: left,
    ),
    "localCheckpoint": (
        lambda left, right: locally_checkpointed(left.reduceByKey(operator.add)).map(lambda kv: kv),
        lambda left, right: naive.reduce_by_key(left, operator.add),
    ),
}  # fmt: skip


def checkpointed(dataset: Any) -> Any:
    dataset.checkpoint()
    dataset.count()
    return dataset


def locally_checkpointed(dataset: Any) -> Any:
    dataset.localCheckpoint()
    dataset.count()
    return dataset

"""Pipelines in which one planted record raises, in Spark, and the input rows that it is made of.

Inputs are pairs (key, number) of a file with ROWS lines `key|number`, of which number BAD is the planted one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROWS, KEYS, BAD = 30, 3, 17
#: All rows with the key of the planted one.
GROUP = frozenset(range(BAD % KEYS, ROWS, KEYS))
ROW = frozenset((BAD,))


class PlantedError(ValueError):
    pass


def bad(record: Any) -> Any:
    """The record, unless it is the planted one."""
    number = record[1] if isinstance(record, tuple) else record
    if number == BAD:
        raise PlantedError(f"planted {record}")
    return record


def is_good(record: Any) -> bool:
    bad(record)
    return True


def late(record: Any) -> Iterator[Any]:
    yield record
    bad(record)


def by_row(rows: Iterable[Any]) -> Iterator[Any]:
    for row in rows:
        yield bad(row)


def with_finally(rows: Iterable[Any]) -> Iterator[Any]:
    try:
        for row in rows:
            yield bad(row)
    finally:
        raise KeyError("in finally")


def all_at_once(rows: Iterable[Any]) -> Iterator[Any]:
    return iter([bad(row) for row in sorted(rows)])


def caught(rows: Iterable[Any]) -> Iterator[Any]:
    """Catches the error of the planted record, and raises one of its own at the end."""
    source = iter(rows)
    while True:
        try:
            yield next(source)
        except StopIteration:
            break
        except PlantedError:
            continue
    raise RuntimeError("another error")


class Unpicklable:
    def __reduce__(self) -> Any:
        raise TypeError("it cannot be pickled")


@dataclass(frozen=True)
class Failing:
    """A job that fails: (pairs, folder for outputs) -> None. `rows` are those of the culprit.

    None: the planted one is among those that are named. `is_planted`: it is what made the job fail.
    """

    run: Callable[[Any, Path], Any]
    rows: frozenset[int] | None = ROW
    exact: bool = True
    error: str = "PlantedError"
    is_planted: bool = True


def through_a_frame(pairs: Any) -> Any:
    from pyspark.sql import SparkSession

    frame = SparkSession.builder.getOrCreate().createDataFrame(pairs, "k string, n int")
    return frame.rdd.map(tuple)


def changed(pair: Any, to: Any) -> Any:
    return to if pair[1] == BAD else pair


CASES: dict[str, Failing] = {
    "map": Failing(lambda pairs, _: pairs.map(bad).count()),
    "map behind filter and flatMap": Failing(
        lambda pairs, _: pairs.filter(lambda kv: kv[1] % 2).flatMap(lambda kv: [kv] * 2).map(bad).collect()
    ),
    "mapValues": Failing(lambda pairs, _: pairs.mapValues(bad).collect()),
    "filter": Failing(lambda pairs, _: pairs.filter(is_good).map(str).collect()),
    "flatMap": Failing(lambda pairs, _: pairs.flatMap(lambda kv: [bad(kv)] * 2).take(100)),
    "flatMap, lazily": Failing(lambda pairs, _: pairs.flatMap(late).filter(bool).collect()),
    "flatMap of a map": Failing(lambda pairs, _: pairs.flatMap(lambda kv: map(bad, [kv, kv])).collect()),
    "flatMap of None": Failing(
        lambda pairs, _: pairs.flatMap(lambda kv: changed(kv, None)).collect(), error="TypeError"
    ),
    "StopIteration": Failing(
        lambda pairs, _: pairs.map(lambda kv: next(iter([])) if kv[1] == BAD else kv).collect(),
        error="PySparkRuntimeError",
    ),
    "first of a group": Failing(
        lambda pairs, _: (
            pairs.map(lambda kv: (kv[1], kv[1])).combineByKey(bad, lambda a, b: a, lambda a, b: a).collect()
        )
    ),
    "reduceByKey": Failing(
        lambda pairs, _: pairs.reduceByKey(lambda a, b: bad(a) + bad(b)).collect(), None, False
    ),
    "no pair": Failing(
        lambda pairs, _: pairs.map(lambda kv: changed(kv, 5)).reduceByKey(max).collect(), error="TypeError"
    ),
    "no hash": Failing(
        lambda pairs, _: pairs.map(lambda kv: changed(kv, ([], 1))).groupByKey().collect(), error="TypeError"
    ),
    "partition function": Failing(
        lambda pairs, _: pairs.map(lambda kv: (kv[1], kv)).partitionBy(2, bad).collect()
    ),
    "behind a group": Failing(
        lambda pairs, _: pairs.groupByKey().mapValues(lambda values: [bad(v) for v in values]).collect(),
        rows=GROUP,
    ),
    "behind a join": Failing(
        lambda pairs, _: (
            pairs.join(pairs.filter(lambda kv: kv[1] == 20)).map(lambda kv: bad(kv[1][0])).count()
        ),
        rows=frozenset((BAD, 20)),
    ),
    "behind a sort": Failing(
        lambda pairs, _: pairs.sortBy(lambda kv: -kv[1], numPartitions=2).map(bad).collect()
    ),
    "behind a coalesce": Failing(lambda pairs, _: pairs.coalesce(1).map(bad).collect()),
    "behind a repartition": Failing(lambda pairs, _: pairs.repartition(3).map(bad).collect()),
    "behind a cache": Failing(lambda pairs, _: pairs.map(lambda kv: kv).cache().map(bad).collect()),
    "key of a sort": Failing(lambda pairs, _: pairs.sortBy(bad, numPartitions=1).collect()),
    "partition by row": Failing(lambda pairs, _: pairs.mapPartitions(by_row).collect()),
    "partition by map": Failing(lambda pairs, _: pairs.mapPartitions(lambda rows: map(bad, rows)).collect()),
    "finally": Failing(
        lambda pairs, _: pairs.mapPartitions(with_finally).collect(), None, False, "KeyError", False
    ),
    "partition at once": Failing(lambda pairs, _: pairs.mapPartitions(all_at_once).collect(), None, False),
    "caught": Failing(
        lambda pairs, _: pairs.map(bad).mapPartitions(caught).collect(), None, False, "RuntimeError", False
    ),
    "text": Failing(
        lambda pairs, folder: pairs.map(lambda kv: changed(kv, "\ud800")).saveAsTextFile(str(folder)),
        error="UnicodeEncodeError",
    ),
    "pickle": Failing(
        lambda pairs, _: pairs.map(lambda kv: changed(kv, Unpicklable())).collect(),
        None,
        False,
        "PicklingError",
    ),
    "foreach": Failing(lambda pairs, _: pairs.foreach(bad), None, False),
    "union": Failing(lambda pairs, _: pairs.union(pairs.filter(lambda kv: kv[1] < BAD)).map(bad).collect()),
    "second part of a coalesced union": Failing(
        lambda pairs, _: pairs.filter(lambda kv: kv[1] < 9).union(pairs).coalesce(1).map(bad).collect()
    ),
    "zip": Failing(lambda pairs, _: pairs.zip(pairs.map(str)).map(lambda two: bad(two[0])).collect()),
    "cartesian": Failing(
        lambda pairs, _: pairs.cartesian(pairs.ctx.parallelize([0], 1)).map(lambda two: bad(two[0])).collect()
    ),
    "through a DataFrame": Failing(lambda pairs, _: through_a_frame(pairs).map(bad).collect()),
    "between two DataFrames": Failing(
        lambda pairs, _: through_a_frame(through_a_frame(pairs).map(bad)).collect()
    ),
    "largest": Failing(lambda pairs, _: pairs.map(lambda kv: kv[1]).max(bad), None, False),
    "comparison in a sort": Failing(
        lambda pairs, _: (
            pairs.map(lambda kv: (changed(kv, (None, BAD))[0], kv)).sortByKey(numPartitions=1).collect()
        ),
        None,
        False,
        "TypeError",
    ),
}


# -- random chains ---------------------------------------------------------------------------------------


def steps_of(seed: int) -> tuple[list[str], int]:
    """(names of steps, which of them raises)."""
    chance = random.Random(seed)
    names = [chance.choice(list(STEPS)) for _ in range(chance.randint(1, 6))]
    return names, chance.randrange(len(names))


def _same(record: Any) -> Any:
    return record


#: name -> (pairs, what is called with each record) -> pairs. The number of a pair stays that of its row.
STEPS: dict[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "map": lambda data, call: data.map(lambda kv: call((kv[0] + "x", kv[1]))),
    "filter": lambda data, call: data.filter(lambda kv: call(kv)[1] % 4 != 2),
    "flatMap": lambda data, call: data.flatMap(lambda kv: [call(kv)] * (1 + kv[1] % 2)),
    "lazily": lambda data, call: data.flatMap(lambda kv: (call(pair) for pair in [kv, kv])),
    "map object": lambda data, call: data.flatMap(lambda kv: map(call, [kv])),
    "mapPartitions": lambda data, call: data.mapPartitions(lambda rows: (call(row) for row in rows)),
    "keyBy": lambda data, call: data.map(lambda kv: (call(kv)[1] % 4, kv)).values(),
    "partitionBy": lambda data, call: data.partitionBy(2).map(call),
    "repartition": lambda data, call: data.repartition(3).map(call),
    "group": lambda data, call: data.map(lambda kv: (kv[1], kv)).groupByKey(2).mapValues(next_of).map(
        lambda kv: call(kv[1])
    ),
    "sortBy": lambda data, call: data.sortBy(lambda kv: kv[1] % 5, numPartitions=2).map(call),
    "distinct": lambda data, call: data.distinct(2).map(call),
    "union": lambda data, call: data.union(data.filter(lambda kv: kv[1] < 3)).map(call),
    "second of a union": lambda data, call: data.filter(lambda kv: kv[1] < 3).union(data).map(call),
    "coalesce": lambda data, call: data.coalesce(1).map(call),
    "zip": lambda data, call: data.zip(data.map(_same)).map(lambda two: call(two[0])),
    "cartesian": lambda data, call: data.cartesian(data.ctx.parallelize([0], 1)).map(
        lambda two: call(two[0])
    ),
    "join": lambda data, call: data.map(lambda kv: (kv[1], kv)).join(
        data.filter(lambda kv: kv[1] == BAD).map(lambda kv: (kv[1], 0)), 2
    ).map(lambda kv: call(kv[1][0])).union(data.filter(lambda kv: kv[1] < BAD)),
    "zipWithIndex": lambda data, call: data.zipWithIndex().map(lambda two: call(two[0])),
    "cache": lambda data, call: data.cache().map(call),
    "frame": lambda data, call: through_a_frame(data).map(call),
}  # fmt: skip


def next_of(values: Iterable[Any]) -> Any:
    return next(iter(values))


def random_chain(pairs: Any, seed: int) -> Any:
    names, raising = steps_of(seed)
    for at, name in enumerate(names):
        pairs = STEPS[name](pairs, bad if at == raising else _same)
    return pairs

"""Random small jobs with loops and steps that are not monotone; in Spark, and in plain Python.

    python looped_program.py FOLDER SEED

Reads FOLDER/left.txt and FOLDER/right.txt, pairs of numbers, and saves FOLDER/out-SEED. A job is a function
of two sets of pairs, so `Pairs` computes it without Spark.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

KEYS = 12


class Pairs:
    """What an RDD of pairs gives, by loops."""

    def __init__(self, records: Iterable[Any]) -> None:
        self.records = list(records)

    def _by_key(self) -> dict[Any, list[Any]]:
        groups: dict[Any, list[Any]] = defaultdict(list)
        for key, value in self.records:
            groups[key].append(value)
        return groups

    def map(self, function: Callable[[Any], Any]) -> Pairs:
        return Pairs(map(function, self.records))

    def mapValues(self, function: Callable[[Any], Any]) -> Pairs:
        return Pairs((key, function(value)) for key, value in self.records)

    def filter(self, function: Callable[[Any], Any]) -> Pairs:
        return Pairs(filter(function, self.records))

    def union(self, other: Pairs) -> Pairs:
        return Pairs([*self.records, *other.records])

    def distinct(self) -> Pairs:
        return Pairs(dict.fromkeys(self.records))

    def subtract(self, other: Pairs) -> Pairs:
        return Pairs(record for record in self.records if record not in other.records)

    def subtractByKey(self, other: Pairs) -> Pairs:
        return Pairs(record for record in self.records if record[0] not in other._by_key())

    def reduceByKey(self, function: Callable[[Any, Any], Any]) -> Pairs:
        reduced = []
        for key, values in self._by_key().items():
            value = values[0]
            for other in values[1:]:
                value = function(value, other)
            reduced.append((key, value))
        return Pairs(reduced)

    def join(self, other: Pairs) -> Pairs:
        groups = other._by_key()
        return Pairs((key, (value, one)) for key, value in self.records for one in groups.get(key, ()))

    def leftOuterJoin(self, other: Pairs) -> Pairs:
        groups = other._by_key()
        return Pairs((key, (value, one)) for key, value in self.records for one in groups.get(key, (None,)))


# -- steps of a turn -----------------------------------------------------------------------------------


def smallest(state: Any, right: Any) -> Any:
    return state.reduceByKey(min)


def largest(state: Any, right: Any) -> Any:
    return state.reduceByKey(max)


def added(state: Any, right: Any) -> Any:
    return state.reduceByKey(lambda one, other: (one + other) % 97)


def spread(state: Any, right: Any) -> Any:
    """Along the edges of `right`, beside what is there."""
    return state.union(state.join(right).map(lambda pair: (pair[1][1] % KEYS, pair[1][0]))).distinct()


def own(state: Any, right: Any) -> Any:
    """Only keys that are there once."""
    counts = state.mapValues(lambda _: 1).reduceByKey(lambda one, other: one + other)
    once = counts.filter(lambda pair: pair[1] == 1)
    return state.join(once).mapValues(lambda values: values[0])


def without_small(state: Any, right: Any) -> Any:
    return state.subtract(state.reduceByKey(min))


def without_keys(state: Any, right: Any) -> Any:
    return state.subtractByKey(right.filter(lambda pair: pair[1] % 5 == 0))


def outer(state: Any, right: Any) -> Any:
    joined = state.leftOuterJoin(right.reduceByKey(min))
    return joined.mapValues(lambda values: (values[0] + (50 if values[1] is None else values[1])) % 97)


STEPS = (smallest, largest, added, spread, own, without_small, without_keys, outer)


def job(seed: int, left: Any, right: Any) -> Any:
    """Two to five turns of two or three of the steps, which are the same in each turn."""
    chosen = random.Random(seed)
    turns = chosen.randint(2, 5)
    steps = [spread, *chosen.sample(STEPS, chosen.randint(1, 2))]
    chosen.shuffle(steps)
    state = left
    for _ in range(turns):
        for step in steps:
            state = step(state, right)
    return state.distinct()


def text_of(pair: Any) -> str:
    return f"{pair[0]},{pair[1]}"


def pair_of(line: str) -> tuple[int, int]:
    key, value = line.split()
    return int(key), int(value)


def lines_of(seed: int) -> tuple[list[str], list[str]]:
    """The inputs of a job."""
    chosen = random.Random(seed)
    left = [f"{chosen.randrange(KEYS)} {chosen.randrange(90)}" for _ in range(chosen.randint(6, 14))]
    right = [f"{chosen.randrange(KEYS)} {chosen.randrange(90)}" for _ in range(chosen.randint(8, 20))]
    return left, right


def plain(seed: int, left: Sequence[str], right: Sequence[str]) -> Counter[str]:
    """The rows that the job writes of these lines."""
    result = job(seed, Pairs(map(pair_of, left)), Pairs(map(pair_of, right)))
    return Counter(map(text_of, result.records))


def seeds(first: int, count: int) -> list[int]:
    """Of jobs that write something."""
    writing = (seed for seed in itertools.count(first) if plain(seed, *lines_of(seed)))
    return list(itertools.islice(writing, count))


def in_spark(context: Any, folder: Path, seed: int) -> Any:
    """The RDD of the texts."""
    left = context.textFile(str(folder / "left.txt"), 2).map(pair_of)
    right = context.textFile(str(folder / "right.txt"), 2).map(pair_of)
    return job(seed, left, right).map(text_of)


def main(folder: Path, seed: int) -> None:
    from pyspark import SparkConf, SparkContext

    context = SparkContext(conf=SparkConf().setMaster("local[2]").setAppName("looped"))
    context.setLogLevel("OFF")
    in_spark(context, folder, seed).saveAsTextFile(str(folder / f"out-{seed}"))
    context.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))

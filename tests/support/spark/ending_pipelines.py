"""Random pipelines of RDDs in which rows end, each in Spark and over lists of records.

A program is a list of steps over datasets of (int, int): 0 and 1 are the inputs, step n makes dataset n + 2.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.spark.record_graph import Item, Made, RecordGraph

Pair = tuple[int, int]


@dataclass(frozen=True)
class Step:
    name: str
    inputs: tuple[int, ...]
    number: int  # a parameter


def make(seed: int) -> list[Step]:
    chance = random.Random(seed)
    steps: list[Step] = []
    for at in range(chance.randint(2, 6)):
        name = chance.choice(list(SPARK))
        last = at + 1 if at else chance.choice([0, 1])
        other = chance.randrange(at + 2)
        inputs = (last, other) if name in TWO_SIDED else (last,)
        if name in TWO_SIDED and chance.random() < 0.5:
            inputs = (other, last)
        steps.append(Step(name, inputs, chance.randint(2, 4)))
    return steps


def plus(pair: tuple[int, tuple[int, int | None]]) -> Pair:
    key, (value, other) = pair
    return key, value + (other or 0)


SPARK: Mapping[str, Callable[..., Any]] = {
    "filter": lambda n, data: data.filter(lambda kv: (kv[0] + kv[1]) % n != 0),
    "flatMap": lambda n, data: data.flatMap(lambda kv: [(kv[0], kv[1] + i) for i in range(kv[1] % n)]),
    "map": lambda n, data: data.map(lambda kv: ((kv[0] + kv[1]) % (n + 1), kv[1])),
    "reduceByKey": lambda n, data: data.reduceByKey(operator.add, n),
    "distinct": lambda n, data: data.distinct(n),
    "sortBy": lambda n, data: data.sortBy(lambda kv: kv[1], numPartitions=n),
    "repartition": lambda n, data: data.repartition(n),
    "join": lambda n, data, other: data.join(other, n),
    "leftOuterJoin": lambda n, data, other: data.leftOuterJoin(other, n),
    "subtractByKey": lambda n, data, other: data.subtractByKey(other, n),
    "subtract": lambda n, data, other: data.subtract(other, n),
    "intersection": lambda n, data, other: data.intersection(other),
    "union": lambda n, data, other: data.union(other),
}  # fmt: skip
TWO_SIDED = frozenset(("join", "leftOuterJoin", "subtractByKey", "subtract", "intersection", "union"))


def in_spark(program: Sequence[Step], left: Any, right: Any) -> tuple[Any, list[int]]:
    """(the last dataset, the number of the node of each step)."""
    datasets, nodes = [left, right], list[int]()
    for step in program:
        made = SPARK[step.name](step.number, *(datasets[at] for at in step.inputs))
        nodes.append(made._lineage_node.number)
        datasets.append(made.map(plus) if step.name in ("join", "leftOuterJoin") else made)
    return datasets[-1], nodes


def naively(
    program: Sequence[Step], left: Sequence[Pair], right: Sequence[Pair]
) -> tuple[list[Item], list[Item], Callable[[Item], set[int] | None]]:
    """(rows of both inputs, what gives the steps at which one of them ended, None if it is in the output)."""
    graph = RecordGraph()
    rows = [[Item(pair) for pair in pairs] for pairs in (left, right)]
    datasets = list(rows)
    for at, step in enumerate(program):
        taken = [datasets[number] for number in step.inputs]
        made = NAIVE[step.name](step.number, *taken)
        before = [number - 2 for number in step.inputs if number >= 2]
        datasets.append(graph.step(at, before, (item for items in taken for item in items), made))
    last = len(program) - 1
    return rows[0], rows[1], lambda row: graph.ends(row, last, datasets[-1])


def _grouped(items: Sequence[Item], key: Callable[[Any], Any]) -> dict[Any, list[Item]]:
    groups: dict[Any, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item.value), []).append(item)
    return groups


def _key(pair: Pair) -> int:
    return pair[0]


def _joined(items: Sequence[Item], others: Sequence[Item], *, keep_left: bool = False) -> list[Made]:
    groups = _grouped(others, _key)
    made: list[Made] = []
    for item in items:
        key, value = item.value
        matches = groups.get(key, [])
        made += [((key, value + other.value[1]), (item, other)) for other in matches]
        if not matches and keep_left:
            made.append((item.value, (item,)))
    return made


def _without(items: Sequence[Item], others: Sequence[Item], key: Callable[[Any], Any]) -> list[Made]:
    keys = {key(other.value) for other in others}
    return [(item.value, (item,)) for item in items if key(item.value) not in keys]


def _common(items: Sequence[Item], others: Sequence[Item]) -> list[Made]:
    groups = _grouped(others, lambda value: value)
    return [
        (value, (*mine, *groups[value]))
        for value, mine in _grouped(items, lambda value: value).items()
        if value in groups
    ]


NAIVE: Mapping[str, Callable[..., list[Made]]] = {
    "filter": lambda n, items: [(i.value, (i,)) for i in items if sum(i.value) % n != 0],
    "flatMap": lambda n, items: [
        ((i.value[0], i.value[1] + more), (i,)) for i in items for more in range(i.value[1] % n)
    ],
    "map": lambda n, items: [((sum(i.value) % (n + 1), i.value[1]), (i,)) for i in items],
    "reduceByKey": lambda n, items: [
        ((key, sum(i.value[1] for i in group)), group) for key, group in _grouped(items, _key).items()
    ],
    "distinct": lambda n, items: list(_grouped(items, lambda value: value).items()),
    "sortBy": lambda n, items: [(i.value, (i,)) for i in items],
    "repartition": lambda n, items: [(i.value, (i,)) for i in items],
    "join": lambda n, items, others: _joined(items, others),
    "leftOuterJoin": lambda n, items, others: _joined(items, others, keep_left=True),
    "subtractByKey": lambda n, items, others: _without(items, others, _key),
    "subtract": lambda n, items, others: _without(items, others, lambda value: value),
    "intersection": lambda n, items, others: _common(items, others),
    "union": lambda n, items, others: [(i.value, (i,)) for i in (*items, *others)],
}  # fmt: skip

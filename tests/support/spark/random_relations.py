"""What random queries are made of: relations, and expressions over their rows, as SQL and as Python."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.spark import relational as r
from tests.support.spark.relational import Data

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Column:
    name: str
    type: str  # int, text, float


@dataclass(frozen=True)
class Relation:
    """A query and what it gives. The values of `unique` are all different, and none is null.

    Where nobody asks for the columns `needed`, Spark does without the rows that they are made of, which then
    are no sources: so they are asked for.
    """

    text: str
    data: Data
    columns: tuple[Column, ...]
    unique: str | None = None
    needed: frozenset[str] = frozenset()

    def place(self, column: Column) -> int:
        return self.columns.index(column)

    def of(self, type_name: str) -> list[Column]:
        return [column for column in self.columns if column.type == type_name]


@dataclass(frozen=True)
class Value:
    """An expression over a row, or a condition."""

    text: str
    of: Callable[[Row], Any]
    type: str = "int"


def value_of(chance: random.Random, of: Relation) -> Value:
    column = chance.choice(of.columns)
    at, name, number = of.place(column), column.name, chance.randint(-2, 5)
    if column.type == "float":
        return Value(name, lambda row: row[at], "float")
    if column.type == "text":
        return chance.choice(
            [
                Value(name, lambda row: row[at], "text"),
                Value(f"coalesce({name}, 'x')", lambda row: "x" if row[at] is None else row[at], "text"),
                Value(f"concat({name}, 'q')", lambda row: _if_known(row[at], lambda v: v + "q"), "text"),
                Value(f"length({name})", lambda row: _if_known(row[at], len)),
            ]
        )
    return chance.choice(
        [
            Value(name, lambda row: row[at]),
            Value(f"{name} + {number}", lambda row: _if_known(row[at], lambda v: v + number)),
            Value(f"coalesce({name}, {number})", lambda row: number if row[at] is None else row[at]),
            Value(f"{name} % 3", lambda row: _if_known(row[at], lambda v: int(math.fmod(v, 3)))),
            Value(
                f"case when {name} > {number} then {name} end",
                lambda row: row[at] if row[at] is not None and row[at] > number else None,
            ),
        ]
    )


def condition_of(chance: random.Random, of: Relation) -> Value:
    column = chance.choice(of.columns)
    at, name, number = of.place(column), column.name, chance.randint(-2, 6)
    conditions = [
        Value(f"{name} is null", lambda row: row[at] is None),
        Value(f"{name} is not null", lambda row: row[at] is not None),
    ]
    if column.type == "int":
        conditions += [
            Value(f"{name} > {number}", lambda row: row[at] is not None and row[at] > number),
            Value(f"{name} in ({number}, 1, 3)", lambda row: row[at] in (number, 1, 3)),
            Value(f"coalesce({name}, 3) < 9", lambda row: (3 if row[at] is None else row[at]) < 9),
        ]
    if column.type == "text":
        conditions.append(Value(f"{name} >= 'x'", lambda row: row[at] is not None and row[at] >= "x"))
    return chance.choice(conditions)


def meeting_of(
    chance: random.Random, left: Relation, right: Relation
) -> tuple[str, Callable[[Row, Row], bool]] | None:
    """A condition of equal columns, and perhaps more."""
    pairs = [(a, b) for a in left.columns for b in right.columns if a.type == b.type]
    if not pairs:
        return None
    chosen = chance.sample(pairs, min(len(pairs), chance.choice([1, 1, 1, 2])))
    texts: list[str] = []
    tests: list[Callable[[Row, Row], bool]] = []
    for one, other in chosen:
        at, other_at, nulls = left.place(one), right.place(other), chance.choice([0, 0, 0, 1, 2])
        if nulls == 1:
            texts.append(f"{one.name} <=> {other.name}")
            tests.append(lambda a, b, at=at, other_at=other_at: r.same(a[at], b[other_at]))
        elif nulls == 2 and one.type == "int":
            texts.append(f"coalesce({one.name}, 2) = {other.name}")
            tests.append(
                lambda a, b, at=at, other_at=other_at: r.equal(2 if a[at] is None else a[at], b[other_at])
            )
        else:
            texts.append(f"{one.name} = {other.name}")
            tests.append(lambda a, b, at=at, other_at=other_at: r.equal(a[at], b[other_at]))
    mine, others = left.of("int"), right.of("int")
    if mine and others and chance.random() < 0.2:
        one, other = chance.choice(mine), chance.choice(others)
        at, other_at = left.place(one), right.place(other)
        texts.append(f"{one.name} < {other.name}")
        tests.append(lambda a, b: a[at] is not None and b[other_at] is not None and bool(a[at] < b[other_at]))
    return " and ".join(texts), lambda a, b: all(test(a, b) for test in tests)


def itself(of: Relation, column: Column) -> Value:
    at = of.place(column)
    return Value(column.name, lambda row: row[at], column.type)


def _if_known(value: Any, function: Callable[[Any], Any]) -> Any:
    return None if value is None else function(value)


def non_null(rows: Sequence[Row], at: int) -> list[Any]:
    return [row[at] for row in rows if row[at] is not None]

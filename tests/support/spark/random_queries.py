"""Queries made by chance, each with its oracle: SQL text, and the rows and their sources by plain Python.

A query begins with a table and goes on by steps, each a query around the one before. The rows are known on
the way, so that joins of joins stay small.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.support.spark import relational as r
from tests.support.spark.dataframe_oracle import Tables
from tests.support.spark.random_relations import (
    Column,
    Relation,
    Row,
    Value,
    condition_of,
    itself,
    meeting_of,
    non_null,
    value_of,
)
from tests.support.spark.shop import TEXT_SCHEMA, Shop

MOST_ROWS = 60
MOST_STEPS = 5


def make(seed: int, shop: Shop) -> Relation:
    return _Maker(random.Random(seed), shop).query()


def begin(tables: Tables) -> None:
    """The tables that are no views yet."""
    read = tables.spark.read
    read.schema(TEXT_SCHEMA).csv(tables.shop.path("csv")).createOrReplaceTempView("csv")
    read.schema(TEXT_SCHEMA).json(tables.shop.path("json")).createOrReplaceTempView("json")


#: View -> its columns and their types.
_TABLES = {
    "orders": "id int, customer int, amount int, tag text, price float",
    "csv": "id int, customer int, amount int, tag text",
    "json": "id int, customer int, amount int, tag text",
    "customers": "key int, name text",
    "labels": "tag text, weight int",
}


class _Maker:
    def __init__(self, chance: random.Random, shop: Shop) -> None:
        self.chance = chance
        self.shop = shop
        self._numbers = itertools.count()

    def query(self) -> Relation:
        relation = self.table()
        for _ in range(self.chance.randint(2, MOST_STEPS)):
            relation = self.step(relation)
        return relation

    def other(self) -> Relation:
        """What a query is brought together with."""
        relation = self.table()
        for _ in range(self.chance.choice([0, 0, 1, 1, 2])):
            relation = self.step(relation)
        return relation

    def looked_at(self) -> Relation:
        """The same, of which not all columns are asked for."""
        while (relation := self.other()).needed:
            pass
        return relation

    def step(self, before: Relation) -> Relation:
        for _ in range(20):
            relation = self.chance.choice(_STEPS)(self, before)
            if (
                relation is not None
                and len(relation.data) <= MOST_ROWS
                and (relation.data or self.chance.random() < 0.05)
            ):
                return relation
        return before

    def name(self, letter: str = "c") -> str:
        return f"{letter}{next(self._numbers)}"

    def table(self) -> Relation:
        view = self.chance.choice([*_TABLES])
        stock = [Column(*part.split()) for part in _TABLES[view].split(", ")]
        columns = tuple(Column(self.name(), column.type) for column in stock)
        selected = ", ".join(f"{a.name} as {b.name}" for a, b in zip(stock, columns, strict=True))
        data = r.select(getattr(self.shop, view), lambda row: tuple(row)[: len(stock)])
        unique = columns[0].name if stock[0].name == "id" else None
        return Relation(f"select {selected} from {view}", data, columns, unique)

    def around(self, inner: Relation, select: str = "*", rest: str = "") -> str:
        return f"select {select} from ({inner.text}) {self.name('t')} {rest}".rstrip()

    def renamed(self, inner: Relation) -> Relation:
        columns = tuple(replace(column, name=self.name(column.name[0])) for column in inner.columns)
        names = {a.name: b.name for a, b in zip(inner.columns, columns, strict=True)}
        text = self.around(inner, ", ".join(f"{a} as {b}" for a, b in names.items()))
        return Relation(text, inner.data, columns, needed=frozenset(names[name] for name in inner.needed))

    # -- steps -----------------------------------------------------------------------------------------

    def project(self, before: Relation) -> Relation:
        chosen = self.chance.sample(before.columns, self.chance.randint(1, len(before.columns)))
        kept = [column for column in before.columns if column in chosen or column.name in before.needed]
        values = [itself(before, column) for column in kept]
        values += [value_of(self.chance, before) for _ in range(self.chance.randint(0, 2))]
        names = [*(column.name for column in kept), *(self.name() for _ in values[len(kept) :])]
        selected = ", ".join(f"{value.text} as {name}" for value, name in zip(values, names, strict=True))
        return Relation(
            self.around(before, selected),
            r.select(before.data, lambda row: tuple(value.of(row) for value in values)),
            tuple(Column(name, value.type) for value, name in zip(values, names, strict=True)),
            before.unique if before.unique in names else None,
            before.needed,
        )

    def filter(self, before: Relation) -> Relation:
        condition = condition_of(self.chance, before)
        if self.chance.random() < 0.3:
            other = condition_of(self.chance, before)
            word, both = self.chance.choice([("or", any), ("and", all)])
            one = condition
            condition = Value(
                f"{one.text} {word} {other.text}", lambda row: both([one.of(row), other.of(row)])
            )
        text = self.around(before, rest=f"where {condition.text}")
        return replace(before, text=text, data=r.where(before.data, condition.of))

    def join(self, before: Relation) -> Relation | None:
        kind = self.chance.choice(["inner", "inner", "left", "right", "full", "left semi", "left anti"])
        other = self.looked_at() if kind in ("left semi", "left anti") else self.other()
        if not before.needed and self.chance.random() < 0.2:
            other = self.renamed(before)
        met = meeting_of(self.chance, before, other)
        if met is None:
            return None
        text, meets = met
        joined = self.around(before, rest=f"{kind} join ({other.text}) {self.name('t')} on {text}")
        if kind == "left semi":
            return replace(before, text=joined, data=r.semi(before.data, other.data, meets))
        if kind == "left anti":
            return replace(before, text=joined, data=r.anti(before.data, other.data, meets))
        left, right = (None,) * len(before.columns), (None,) * len(other.columns)
        pairs = r.join(
            before.data,
            other.data,
            meets,
            keep_left=kind in ("left", "full"),
            keep_right=kind in ("right", "full"),
        )
        data = r.select(pairs, lambda pair: (*(pair[0] or left), *(pair[1] or right)))
        needed = before.needed | other.needed
        if kind != "inner":
            needed |= {before.columns[0].name, other.columns[0].name}
        return Relation(joined, data, (*before.columns, *other.columns), needed=needed)

    def subquery(self, before: Relation) -> Relation | None:
        """EXISTS, IN and their opposites, alone or beside a condition."""
        other = self.looked_at()
        met = meeting_of(self.chance, before, other)
        if met is None:
            return None
        text, meets = met
        asked = f"exists (select 1 from ({other.text}) {self.name('t')} where {text})"
        is_denied, beside = self.chance.random() < 0.3, condition_of(self.chance, before)
        is_alone = _may_be_known(beside) or self.chance.random() < 0.5
        condition = f"{'not ' if is_denied else ''}{asked}{'' if is_alone else f' or {beside.text}'}"
        rows = before.data if is_denied else r.matched(before.data, other.data, meets)

        def is_kept(row: Row) -> bool:
            is_met = any(meets(row, other_row) for other_row, _ in other.data)
            return is_met != is_denied or (not is_alone and bool(beside.of(row)))

        return replace(
            before, text=self.around(before, rest=f"where {condition}"), data=r.where(rows, is_kept)
        )

    def within(self, before: Relation) -> Relation | None:
        """IN a query of one column, alone or beside a condition."""
        other = self.looked_at()
        asked = value_of(self.chance, before)
        columns = other.of(asked.type)
        if not columns:
            return None
        column, beside = self.chance.choice(columns), condition_of(self.chance, before)
        at, is_alone = other.place(column), _may_be_known(beside) or self.chance.random() < 0.5

        def meets(row: Row, other_row: Row) -> bool:
            return r.equal(asked.of(row), other_row[at])

        text = f"{asked.text} in (select {column.name} from ({other.text}) {self.name('t')})"
        text += "" if is_alone else f" or {beside.text}"
        rows = r.matched(before.data, other.data, meets)
        data = r.where(
            rows,
            lambda row: (
                any(meets(row, other_row) for other_row, _ in other.data)
                or (not is_alone and bool(beside.of(row)))
            ),
        )
        return replace(before, text=self.around(before, rest=f"where {text}"), data=data)

    def not_within(self, before: Relation) -> Relation | None:
        """NOT IN a query of one column, of which a null makes that nobody knows."""
        other = self.looked_at()
        asked = value_of(self.chance, before)
        columns = other.of(asked.type)
        if not columns:
            return None
        column = self.chance.choice(columns)
        at = other.place(column)

        def is_kept(row: Row) -> bool:
            mine, others = asked.of(row), [value[at] for value, _ in other.data]
            return not others or (
                mine is not None and not any(value is None or r.equal(mine, value) for value in others)
            )

        text = f"{asked.text} not in (select {column.name} from ({other.text}) {self.name('t')})"
        return replace(
            before, text=self.around(before, rest=f"where {text}"), data=r.where(before.data, is_kept)
        )

    def group(self, before: Relation) -> Relation:
        chosen = self.chance.sample(before.columns, min(self.chance.randint(0, 2), len(before.columns)))
        keys = [column for column in before.columns if column in chosen or column.name in before.needed]
        values = [Value("count(*)", len)]
        for column in before.of("int"):
            at, name = before.place(column), column.name
            values += [
                Value(f"sum({name})", lambda rows, at=at: r.total(row[at] for row in rows)),
                Value(f"max({name})", lambda rows, at=at: max(non_null(rows, at), default=None)),
                Value(f"min({name})", lambda rows, at=at: min(non_null(rows, at), default=None)),
                Value(
                    f"count(distinct {name})", lambda rows, at=at: r.count_distinct(row[at] for row in rows)
                ),
            ]
        for column in before.of("text"):
            at, name = before.place(column), column.name
            values.append(
                Value(f"max({name})", lambda rows, at=at: max(non_null(rows, at), default=None), "text")
            )
        values = self.chance.sample(values, min(len(values), self.chance.randint(1, 3)))
        results = tuple(Column(self.name(), value.type) for value in values)
        selected = [f"{value.text} as {column.name}" for value, column in zip(values, results, strict=True)]
        names = [key.name for key in keys]
        places = [before.place(key) for key in keys]

        def of_group(rows: Sequence[Row]) -> Row:
            return tuple(value.of(rows) for value in values)  # type: ignore[arg-type] # of rows, here

        def of_row(row: Row) -> Row:
            return tuple(row[at] for at in places)

        word = self.chance.choice(["", "", "", "rollup", "cube"]) if len(keys) in (1, 2) else ""
        if word:
            sets: list[tuple[int, ...]] = [(0,), ()] if len(keys) == 1 else [(0, 1), (0,), ()]
            if word == "cube" and len(keys) == 2:
                sets.append((1,))
            data = r.grouping_sets(before.data, of_row, sets, of_group)
        elif keys:
            data = r.aggregate(before.data, of_row, of_group)
        else:
            data = r.aggregate_all(before.data, of_group)
        keyed = ", ".join(names)
        rest = f"group by {word}({keyed})" if word else f"group by {keyed}" if names else ""
        text = self.around(before, ", ".join([*names, *selected]), rest)
        is_unique = len(names) == 1 and all(row[0] is not None for row, _ in data)
        return Relation(text, data, (*keys, *results), names[0] if is_unique else None)

    def distinct(self, before: Relation) -> Relation:
        return replace(before, text=self.around(before, "distinct *"), data=r.distinct(before.data))

    def set_operation(self, before: Relation) -> Relation | None:
        other = self.renamed(before) if self.chance.random() < 0.2 else self.other()
        pairs = [(a, b) for a, b in itertools.product(before.columns, other.columns) if a.type == b.type]
        self.chance.shuffle(pairs)
        chosen: list[tuple[Column, Column]] = []
        for a, b in pairs:
            if all(a != x and b != y for x, y in chosen):
                chosen.append((a, b))
        words = {
            "union all": lambda a, b: a + b,
            "union": lambda a, b: r.distinct(a + b),
            "intersect": r.intersect,
            "except": r.except_,
            "intersect all": r.intersect_all,
            "except all": r.except_all,
        }
        word = self.chance.choice([*words])
        if word in ("intersect all", "except all"):  # which of two zeros is shown nobody says
            chosen = [(a, b) for a, b in chosen if a.type != "float"]
        if not chosen or not (
            {a.name for a, _ in chosen} >= before.needed and {b.name for _, b in chosen} >= other.needed
        ):
            return None
        sides = []
        for relation, columns in ((before, [a for a, _ in chosen]), (other, [b for _, b in chosen])):
            places = [relation.place(column) for column in columns]
            text = self.around(relation, ", ".join(column.name for column in columns))
            data = r.select(relation.data, lambda row, places=places: tuple(row[at] for at in places))
            sides.append((text, data))
        (left, data), (right, more) = sides
        needed = before.needed | {a.name for a, b in chosen if b.name in other.needed}
        columns = tuple(a for a, _ in chosen)
        return Relation(f"({left}) {word} ({right})", words[word](data, more), columns, needed=needed)

    def window(self, before: Relation) -> Relation | None:
        """Over no other one and no subquery, which it does not read: Spark may have it below them."""
        numbers = before.of("int")
        if not numbers or any(column.name.startswith("n") for column in before.columns):
            return None
        key, number = self.chance.choice(before.columns), self.chance.choice(numbers)
        at, of = before.place(key), before.place(number)
        word, function = self.chance.choice(
            [
                (f"sum({number.name})", lambda rows: r.total(row[of] for row in rows)),
                ("count(*)", len),
                (f"max({number.name})", lambda rows: max(non_null(rows, of), default=None)),
            ]
        )
        result = Column(self.name("n"), "int")
        data = r.window(before.data, lambda row: row[at], lambda row, rows: (*row, function(rows)))
        text = self.around(before, f"*, {word} over (partition by {key.name}) as {result.name}")
        return Relation(text, data, (*before.columns, result), before.unique, before.needed | {result.name})

    def explode(self, before: Relation) -> Relation | None:
        columns = before.of(self.chance.choice(["int", "text"]))
        if len(columns) < 2:
            return None
        one, other = self.chance.sample(columns, 2)
        places = before.place(one), before.place(other)
        element = Column(self.name(), one.type)
        data = r.explode(before.data, lambda row: [(*row, row[at]) for at in places])
        view = f"lateral view explode(array({one.name}, {other.name})) {self.name('v')} as {element.name}"
        return Relation(
            self.around(before, rest=view), data, (*before.columns, element), needed=before.needed
        )

    def scalar(self, before: Relation) -> Relation | None:
        """Rows beside a value of all rows of another query."""
        other = self.looked_at()
        mine, others = before.of("int"), other.of("int")
        if not mine or not others:
            return None
        one, asked = self.chance.choice(mine), self.chance.choice(others)
        at, of = before.place(one), other.place(asked)
        word, function = self.chance.choice([("max", max), ("min", min)])
        value = function(non_null([row for row, _ in other.data], of), default=None)
        sources = r.all_of(other.data)
        rows = [(row, place | sources) for row, place in before.data]
        text = f"{one.name} >= (select {word}({asked.name}) from ({other.text}) {self.name('t')})"
        data = r.where(rows, lambda row: row[at] is not None and value is not None and bool(row[at] >= value))
        return replace(before, text=self.around(before, rest=f"where {text}"), data=data)

    def correlated(self, before: Relation) -> Relation | None:
        """A value of the rows of another query that a row meets."""
        other = self.looked_at()
        numbers = other.of("int")
        pairs = [(a, b) for a in before.columns for b in other.columns if a.type == b.type]
        if not numbers or not pairs:
            return None
        one, other_one = self.chance.choice(pairs)
        at, key, of = (
            before.place(one),
            other.place(other_one),
            other.place(asked := self.chance.choice(numbers)),
        )
        word, function = self.chance.choice([("max", max), ("min", min)])

        def meets(row: Row, other_row: Row) -> bool:
            return r.equal(row[at], other_row[key])

        result = Column(self.name("n"), "int")
        data = [
            (
                (
                    *row,
                    function(
                        non_null([other_row for other_row, _ in other.data if meets(row, other_row)], of),
                        default=None,
                    ),
                ),
                sources,
            )
            for row, (_, sources) in zip(
                [row for row, _ in before.data], r.matched(before.data, other.data, meets), strict=True
            )
        ]
        rest = f"where {one.name} = {other_one.name}"
        inner = self.around(other, f"{word}({asked.name})", rest)
        return Relation(
            self.around(before, f"*, ({inner}) as {result.name}"),
            data,
            (*before.columns, result),
            before.unique,
            before.needed | {result.name},
        )

    def first(self, before: Relation) -> Relation | None:
        """The first rows in an order that leaves no choice."""
        if before.unique is None:
            return None
        [at] = [at for at, column in enumerate(before.columns) if column.name == before.unique]
        count = self.chance.randint(1, 9)
        is_down = self.chance.random() < 0.5
        data = sorted(before.data, key=lambda pair: pair[0][at], reverse=is_down)[:count]
        rest = f"order by {before.unique}{' desc' if is_down else ''} limit {count}"
        return replace(before, text=self.around(before, rest=rest), data=data)

    def twice(self, before: Relation) -> Relation | None:
        """A query with a name, joined with itself."""
        met = meeting_of(self.chance, before, other := self.renamed(before))
        if met is None:
            return None
        name, right = self.name("w"), self.name("t")
        pairs = zip(before.columns, other.columns, strict=True)
        selected = ", ".join(f"{a.name} as {b.name}" for a, b in pairs)
        text = (
            f"with {name} as ({before.text}) select * from {name} "
            f"join (select {selected} from {name}) {right} on {met[0]}"
        )
        data = r.select(r.join(before.data, before.data, met[1]), lambda pair: (*pair[0], *pair[1]))
        needed = before.needed | other.needed
        return Relation(text, data, (*before.columns, *other.columns), needed=needed)


def _may_be_known(condition: Value) -> bool:
    """May Spark know without a row what comes out? Then it asks nothing else."""
    return " is " in condition.text


_STEPS: list[Callable[[_Maker, Relation], Relation | None]] = [
    _Maker.project,
    _Maker.filter,
    _Maker.join,
    _Maker.join,
    _Maker.subquery,
    _Maker.within,
    _Maker.not_within,
    _Maker.group,
    _Maker.group,
    _Maker.distinct,
    _Maker.set_operation,
    _Maker.set_operation,
    _Maker.window,
    _Maker.explode,
    _Maker.scalar,
    _Maker.correlated,
    _Maker.first,
    _Maker.twice,
]

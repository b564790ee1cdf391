"""Cases of windows with frames: queries with their oracles, which look at each row of a partition alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tests.support.spark import relational as r
from tests.support.spark.dataframe_oracle import Case, Tables, sql
from tests.support.spark.relational import Data
from tests.support.spark.shop import Order, Shop

RANDOM_CASES = 60

Rows = Sequence[Any]
"""The rows of a partition in the window's order."""
Bound = int | None


@dataclass(frozen=True)
class Key:
    """One key of an order."""

    text: str
    of: Callable[[Any], Any]
    is_down: bool = False
    nulls_first: bool | None = None

    @property
    def sql(self) -> str:
        nulls = {None: "", True: " nulls first", False: " nulls last"}[self.nulls_first]
        return f"{self.text}{' desc' if self.is_down else ''}{nulls}"

    def place(self, value: Any) -> tuple[Any, ...]:
        """What rows are sorted by."""
        nulls_first = self.nulls_first if self.nulls_first is not None else not self.is_down
        if value is None:
            return (0 if nulls_first else 2,)
        number = -value if self.is_down else value
        return (1, number)

    def beyond(self, row: Any, distance: int) -> tuple[Any, ...]:
        """The place of what is so far behind a row's own."""
        value = self.of(row)
        if value is None:
            return self.place(None)
        return self.place(value - distance if self.is_down else value + distance)


ID = Key("id", lambda o: o.id)
AMOUNT = Key("amount", lambda o: o.amount)
CUSTOMER = Key("customer", lambda o: o.customer)
UNTIED = (
    (AMOUNT, ID),
    (Key("amount", lambda o: o.amount, is_down=True), Key("id", lambda o: o.id, is_down=True)),
    (CUSTOMER, ID),
    (Key("customer", lambda o: o.customer, nulls_first=False), ID),
    (Key("customer", lambda o: o.customer, is_down=True, nulls_first=True), ID),
)
SINGLE = (
    AMOUNT,
    Key("amount", lambda o: o.amount, is_down=True),
    CUSTOMER,
    Key("customer", lambda o: o.customer, nulls_first=False),
    Key("customer", lambda o: o.customer, is_down=True),
    Key("customer", lambda o: o.customer, is_down=True, nulls_first=True),
)
PARTITIONS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("partition by tag", lambda o: o.tag),
    ("partition by customer", lambda o: o.customer),
    ("", lambda o: ()),
    ("partition by amount % 3", lambda o: abs(o.amount) % 3 * (1 if o.amount >= 0 else -1)),
)


@dataclass(frozen=True)
class Frame:
    unit: str
    start: Bound
    end: Bound

    @property
    def sql(self) -> str:
        return f"{self.unit} between {_bound(self.start, 'preceding')} and {_bound(self.end, 'following')}"

    def rows(self, order: Sequence[Key], rows: Rows, at: int) -> list[int]:
        """The numbers of the rows of the frame of a row."""
        if self.unit == "rows":
            first = 0 if self.start is None else max(at + self.start, 0)
            last = len(rows) - 1 if self.end is None else min(at + self.end, len(rows) - 1)
            return [*range(first, last + 1)]
        places = [tuple(key.place(key.of(row)) for key in order) for row in rows]
        if len(order) > 1 or (self.start in (None, 0) and self.end in (None, 0)):
            low = high = places[at]
        else:
            low = (order[0].beyond(rows[at], self.start or 0),)
            high = (order[0].beyond(rows[at], self.end or 0),)
        return [
            number
            for number, place in enumerate(places)
            if (self.start is None or place >= low) and (self.end is None or place <= high)
        ]


def _bound(distance: Bound, no_bound: str) -> str:
    if distance is None:
        return f"unbounded {no_bound}"
    if distance == 0:
        return "current row"
    return f"{abs(distance)} {'preceding' if distance < 0 else 'following'}"


@dataclass(frozen=True)
class Function:
    """`of` gives the value of a row and the numbers of the rows that it is made of."""

    text: str
    of: Callable[[Sequence[Key], Rows, int], tuple[Any, list[int]]]
    frame: Frame | None = None


def summed(frame: Frame) -> Function:
    def of(order: Sequence[Key], rows: Rows, at: int) -> tuple[Any, list[int]]:
        numbers = frame.rows(order, rows, at)
        return r.total(rows[number].amount for number in numbers), numbers

    return Function("sum(amount)", of, frame)


def greatest(frame: Frame) -> Function:
    def of(order: Sequence[Key], rows: Rows, at: int) -> tuple[Any, list[int]]:
        numbers = frame.rows(order, rows, at)
        known = [rows[number].customer for number in numbers if rows[number].customer is not None]
        return max(known, default=None), numbers

    return Function("max(customer)", of, frame)


def picked(word: str, frame: Frame, nth: int = 1, *, ignores_nulls: bool = False) -> Function:
    """first_value, last_value and nth_value."""

    def of(order: Sequence[Key], rows: Rows, at: int) -> tuple[Any, list[int]]:
        numbers = [
            number
            for number in frame.rows(order, rows, at)
            if not ignores_nulls or rows[number].customer is not None
        ]
        place = -1 if word == "last_value" else nth - 1
        if not numbers or place >= len(numbers):
            return None, []
        return rows[numbers[place]].customer, [numbers[place]]

    arguments = f"customer, {nth}" if word == "nth_value" else "customer"
    return Function(f"{word}({arguments}){' ignore nulls' if ignores_nulls else ''}", of, frame)


def offset(word: str, distance: int, default: str = "", *, ignores_nulls: bool = False) -> Function:
    """lag and lead. The default is `id`, a number or nothing."""
    step = (-1 if word == "lag" else 1) * (1 if distance >= 0 else -1)

    def of(order: Sequence[Key], rows: Rows, at: int) -> tuple[Any, list[int]]:
        number, left = at, abs(distance)
        while left and 0 <= number + step < len(rows):
            number += step
            left -= not ignores_nulls or rows[number].customer is not None
        if left:
            missing = {"": None, "id": rows[at].id}
            return (missing[default] if default in missing else int(default)), []
        return rows[number].customer, [number]

    arguments = f"customer, {distance}{', ' if default else ''}{default}"
    return Function(f"{word}({arguments}){' ignore nulls' if ignores_nulls else ''}", of)


def ranked(word: str) -> Function:
    """Of no other rows, whatever it compares a row with."""

    def of(order: Sequence[Key], rows: Rows, at: int) -> tuple[Any, list[int]]:
        places = [tuple(key.place(key.of(row)) for key in order) for row in rows]
        before = [place for place in places if place < places[at]]
        parts, rest = divmod(len(rows), 3)
        longer = rest * (parts + 1)
        of_three = at // (parts + 1) if at < longer else rest + (at - longer) // max(parts, 1)
        values = {
            "row_number()": at + 1,
            "rank()": len(before) + 1,
            "dense_rank()": len(set(before)) + 1,
            "percent_rank()": len(before) / (len(rows) - 1) if len(rows) > 1 else 0.0,
            "cume_dist()": sum(place <= places[at] for place in places) / len(rows),
            "ntile(3)": of_three + 1,
        }
        return values[word], []

    return Function(word, of)


def window_of(
    data: Data, partition: Callable[[Any], Any], order: Sequence[Key], functions: Sequence[Function]
) -> Data:
    """((row, value, ...), sources) of each row."""
    result: Data = []
    for _, members in r.groups(data, partition):
        members.sort(key=lambda pair: [key.place(key.of(pair[0])) for key in order])
        rows = [row for row, _ in members]
        for at, (row, own) in enumerate(members):
            values = [function.of(order, rows, at) for function in functions]
            others = {number for _, numbers in values for number in numbers}
            sources = own | r.all_of(members[number] for number in others)
            result.append(((row, *(value for value, _ in values)), sources))
    return result


def over(partition: str, order: Sequence[Key], frame: Frame | None = None) -> str:
    keys = ", ".join(key.sql for key in order)
    return f"over ({partition} order by {keys} {'' if frame is None else frame.sql})"


def case_of(partition: int, order: Sequence[Key], functions: Sequence[Function], **more: Any) -> Case:
    by, key = PARTITIONS[partition]
    columns = ", ".join(
        f"{function.text} {over(by, order, function.frame)} as c{number}"
        for number, function in enumerate(functions)
    )
    return sql(
        f"select id, {columns} from orders",
        lambda s: r.select(window_of(s.orders, key, order, functions), lambda row: (row[0].id, *row[1:])),
        **more,
    )


# -- by chance ----------------------------------------------------------------------------------------


def _bounds(chance: random.Random, most: int) -> tuple[Bound, Bound]:
    numbers = sorted(chance.randint(-most, most) for _ in range(2))
    start: Bound = numbers[0]
    end: Bound = numbers[1]
    if chance.random() < 0.3:
        start = None
    if chance.random() < 0.3:
        end = None
    return start, end


def _frame(chance: random.Random, unit: str, most: int) -> Frame:
    return Frame(unit, *_bounds(chance, most))


def _random_case(seed: int) -> Case:
    chance = random.Random(seed)
    unit = chance.choice(["rows", "rows", "range", "range", "peers"])
    order: Sequence[Key]
    if unit == "peers":  # a range over several keys has no offsets
        order, unit = chance.choice(UNTIED), "range"
        bounds: list[tuple[Bound, Bound]] = [(None, 0), (0, None), (0, 0)]
        frames = [Frame(unit, *chance.choice(bounds)) for _ in range(2)]
    elif unit == "rows":
        order = chance.choice(UNTIED)
        frames = [_frame(chance, unit, chance.choice([1, 2, 12])) for _ in range(2)]
    else:
        order = (chance.choice(SINGLE),)
        frames = [_frame(chance, unit, chance.choice([1, 3, 15])) for _ in range(2)]
    makers: list[Callable[[], Function]] = [
        lambda: summed(chance.choice(frames)),
        lambda: summed(chance.choice(frames)),
        lambda: greatest(chance.choice(frames)),
    ]
    if len(order) > 1:  # else it is Spark's choice
        makers += [
            lambda: picked("first_value", chance.choice(frames), ignores_nulls=chance.random() < 0.5),
            lambda: picked("last_value", chance.choice(frames), ignores_nulls=chance.random() < 0.5),
            lambda: picked("nth_value", chance.choice(frames), 2, ignores_nulls=chance.random() < 0.5),
            lambda: offset("lag", chance.choice([1, 2, 5]), chance.choice(["", "id", "-7"])),
            lambda: offset("lead", chance.choice([1, 3]), chance.choice(["", "id", "-7"])),
            lambda: offset("lag", chance.choice([1, 2]), ignores_nulls=True),
            lambda: offset("lead", chance.choice([1, 2]), "id", ignores_nulls=True),
            lambda: ranked("row_number()"),
            lambda: ranked("ntile(3)"),
        ]
    makers += [lambda: ranked("rank()"), lambda: ranked("dense_rank()"), lambda: ranked("cume_dist()")]
    functions = [chance.choice(makers)() for _ in range(chance.randint(1, 3))]
    conf = {"spark.sql.adaptive.enabled": chance.choice(["true", "false"])}
    return case_of(chance.randrange(len(PARTITIONS)), order, functions, conf=conf)


RANDOM = {f"by chance, {seed}": _random_case(seed) for seed in range(RANDOM_CASES)}


# -- one by one ---------------------------------------------------------------------------------------

_RUNNING = Frame("range", None, 0)
_PREVIOUS = offset("lag", 1)


def _values(row: Any) -> tuple[Any, ...]:
    return (row[0].id, *row[1:])


def _both(s: Shop, one: Data, other: Data) -> Data:
    """The columns of both, by the row."""
    by_id = {row[0].id: (row[1:], sources) for row, sources in other}
    return [((*_values(row), *by_id[row[0].id][0]), sources | by_id[row[0].id][1]) for row, sources in one]


def _two_windows(s: Shop) -> Data:
    by_tag = window_of(s.orders, lambda o: o.tag, (AMOUNT, ID), [_PREVIOUS])
    by_customer = window_of(s.orders, lambda o: o.customer, (ID,), [summed(Frame("rows", None, 0))])
    return _both(s, by_tag, by_customer)


@dataclass(frozen=True)
class _WithValue:
    """A row with the value of a window."""

    order: Order
    value: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.order, name)


def _over_another(s: Shop) -> Data:
    inner = window_of(s.orders, lambda o: o.tag, (AMOUNT, ID), [_PREVIOUS])
    data = [(_WithValue(row[0], row[1]), sources) for row, sources in inner]

    def of(order: Sequence[Key], rows: Rows, at: int) -> tuple[Any, list[int]]:
        first = max(at - 2, 0)
        return r.total(row.value for row in rows[first : at + 1]), [*range(first, at + 1)]

    return r.select(window_of(data, lambda o: (), (ID,), [Function("", of)]), _values)


def _exploded(s: Shop) -> Data:
    return r.explode(s.orders, lambda o: [(o, n) for n in range(o.id % 3)])


def _exploded_ranges(s: Shop) -> Data:
    key = Key("", lambda row: row[0].amount)

    def of(order: Sequence[Key], rows: Rows, at: int) -> tuple[Any, list[int]]:
        numbers = Frame("range", -3, 3).rows(order, rows, at)
        return len(numbers), numbers

    data = window_of(_exploded(s), lambda row: row[0].tag, (key,), [Function("", of)])
    return r.select(data, lambda row: (row[0][0].id, row[0][1], row[1]))


def _exploded_rows(s: Shop) -> Data:
    order = (Key("", lambda row: row[0].amount), Key("", lambda row: row[0].id), Key("", lambda row: row[1]))

    def of(order: Sequence[Key], rows: Rows, at: int) -> tuple[Any, list[int]]:
        return len(rows[: at + 1]), [*range(at + 1)]

    data = window_of(_exploded(s), lambda row: row[0].tag, order, [Function("", of)])
    return r.select(data, lambda row: (row[0][0].id, row[0][1], row[1]))


def _exploded_partitions(s: Shop) -> Data:
    counts = {row[:2]: row[2] for row, _ in _exploded_rows(s)}
    return [
        ((row[0].id, row[1], counts[row[0].id, row[1]]), r.all_of(rows))
        for _, rows in r.groups(_exploded(s), lambda row: row[0].tag)
        for row, _ in rows
    ]


def _of_joined(s: Shop) -> Data:
    """An order and each customer with its key, and the amount of the order before."""
    pairs = r.join(s.orders, s.customers, lambda o, c: r.equal(o.customer, c.key))
    by = (
        Key("", lambda pair: pair[0].amount),
        Key("", lambda pair: pair[0].id),
        Key("", lambda pair: pair[1].name),
    )

    def total(order: Sequence[Key], rows: Rows, at: int) -> tuple[Any, list[int]]:
        return r.total(pair[0].amount for pair in rows[: at + 1]), [*range(at + 1)]

    def before(order: Sequence[Key], rows: Rows, at: int) -> tuple[Any, list[int]]:
        return (rows[at - 1][0].amount, [at - 1]) if at else (None, [])

    data = window_of(pairs, lambda pair: pair[1].key, by, [Function("", total), Function("", before)])
    return r.select(data, lambda row: (row[0][0].id, row[0][1].name, *row[1:]))


def _two_of_joined(s: Shop) -> Data:
    """Two wide frames in one SELECT over a join: the hash of a row's ids is no part of another such hash."""
    pairs = r.join(s.orders, s.customers, lambda o, c: r.equal(o.customer, c.key))
    by = (
        Key("", lambda pair: pair[0].amount),
        Key("", lambda pair: pair[0].id),
        Key("", lambda pair: pair[1].name),
    )

    def before(order: Sequence[Key], rows: Rows, at: int) -> tuple[Any, list[int]]:
        numbers = Frame("rows", -9, -2).rows(order, rows, at)
        return r.total(rows[number][0].amount for number in numbers), numbers

    def behind(order: Sequence[Key], rows: Rows, at: int) -> tuple[Any, list[int]]:
        numbers = Frame("rows", 2, 12).rows(order, rows, at)
        return len(numbers), numbers

    data: Data = []
    counted = window_of(pairs, lambda pair: pair[1].key, by, [Function("", behind)])
    for row, sources in window_of(pairs, lambda pair: (), by, [Function("", before)]):
        (other,) = [entry for entry in counted if entry[0][0] == row[0]]
        data.append(((row[0][0].id, row[0][1].name, row[1], other[0][1]), sources | other[1]))
    return data


def _of_groups(s: Shop) -> Data:
    groups = r.aggregate(s.orders, lambda o: (o.customer,), lambda rows: (r.total(o.amount for o in rows),))

    def of(order: Sequence[Key], rows: Rows, at: int) -> tuple[Any, list[int]]:
        return r.total(row[1] for row in rows[: at + 1]), [*range(at + 1)]

    data = window_of(groups, lambda row: (), (Key("", lambda row: row[0]),), [Function("", of)])
    return r.select(data, lambda row: (*row[0], row[1]))


def _kept_left(s: Shop) -> Data:
    """Orders with their labels, or none: an id may be null where a value is not."""
    pairs = r.join(s.orders, s.labels, lambda o, label: r.equal(o.tag, label.tag), keep_left=True)
    by = (Key("", lambda pair: pair[0].id), Key("", lambda pair: pair[1] and pair[1].weight))

    def of(order: Sequence[Key], rows: Rows, at: int) -> tuple[Any, list[int]]:
        for number in reversed(range(at)):
            if rows[number][0].customer is not None:
                return rows[number][0].customer, [number]
        return None, []

    def total(order: Sequence[Key], rows: Rows, at: int) -> tuple[Any, list[int]]:
        return len(rows[at:]), [*range(at, len(rows))]

    data = window_of(pairs, lambda pair: (), by, [Function("", of), Function("", total)])
    return r.select(data, lambda row: (row[0][0].id, row[0][1] and row[0][1].weight, *row[1:]))


def _twice(s: Shop) -> Data:
    """A window joined with itself: both sides are computed by equal parts of a plan."""
    data = window_of(s.orders, lambda o: o.tag, (AMOUNT, ID), [summed(_RUNNING)])
    pairs = r.join(data, data, lambda one, other: r.equal(one[0].customer, other[0].customer))
    return r.select(pairs, lambda pair: (pair[0][0].id, pair[1][0].id, pair[0][1], pair[1][1]))


_SUM = "sum(amount) over (partition by tag order by amount)"
CHOSEN: dict[str, Case] = {
    "several windows in one select": sql(
        f"select id, lag(customer) {over('partition by tag', (AMOUNT, ID))}, sum(amount) over "
        "(partition by customer order by id rows between unbounded preceding and current row) from orders",
        _two_windows,
    ),
    "a window over what a frame gives": sql(
        "select id, sum(n) over (order by id rows between 2 preceding and current row) from "
        f"(select *, lag(customer) {over('partition by tag', (AMOUNT, ID))} n from orders)",
        _over_another,
    ),
    "frames over joined rows": sql(
        "select id, name, sum(amount) over w, lag(amount) over w from orders join customers "
        "on customer = key window w as (partition by key order by amount, id, name "
        "rows between unbounded preceding and current row)".replace(
            "lag(amount) over w", "lag(amount) over v"
        )
        + ", v as (partition by key order by amount, id, name)",
        _of_joined,
    ),
    "two wide frames over joined rows": sql(
        "select id, name, "
        "sum(amount) over (order by amount, id, name rows between 9 preceding and 2 preceding), "
        "count(*) over "
        "(partition by key order by amount, id, name rows between 2 following and 12 following) "
        "from orders join customers on customer = key",
        _two_of_joined,
    ),
    "frames over rows without a match": sql(
        "select id, weight, lag(customer) ignore nulls over (order by id, weight), "
        "count(*) over (order by id, weight rows between current row and unbounded following) "
        "from orders left join labels on orders.tag = labels.tag",
        _kept_left,
    ),
    "a running sum of groups": sql(
        "select customer, s, sum(s) over (order by customer) from "
        "(select customer, sum(amount) s from orders group by customer)",
        _of_groups,
    ),
    "ranges over exploded rows": sql(
        "select id, n, count(*) over (partition by tag order by amount "
        "range between 3 preceding and 3 following) from "
        "(select *, explode(slice(array(0, 1), 1, id % 3)) n from orders)",
        _exploded_ranges,
    ),
    "rows over exploded rows": sql(
        "select id, n, count(*) over (partition by tag order by amount, id, n "
        "rows between unbounded preceding and current row) from "
        "(select *, explode(slice(array(0, 1), 1, id % 3)) n from orders)",
        _exploded_rows,
        bound=_exploded_partitions,
        exact=None,
    ),
    "a window twice in a join": sql(
        f"with w as (select id, customer, {_SUM} s from orders) "
        "select a.id, b.id other, a.s, b.s sum from w a join w b on a.customer = b.customer",
        _twice,
    ),
    "the first rows of a window": sql(
        f"select id, {_SUM} from orders limit 5",
        lambda s: r.select(window_of(s.orders, lambda o: o.tag, (AMOUNT,), [summed(_RUNNING)]), _values),
        chosen=5,
    ),
    "the first of each partition, with a sum": sql(
        "select id, n, s from (select id, row_number() over (partition by tag order by amount, id) n, "
        "sum(amount) over (partition by tag order by amount, id rows between unbounded preceding "
        "and current row) s from orders) where n <= 2",
        lambda s: r.where(
            r.select(
                window_of(
                    s.orders,
                    lambda o: o.tag,
                    (AMOUNT, ID),
                    [ranked("row_number()"), summed(Frame("rows", None, 0))],
                ),
                _values,
            ),
            lambda row: row[1] <= 2,
        ),
    ),
    **{
        f"the best by {word}": sql(
            f"select id from (select id, {word} over (partition by tag order by amount desc) n from orders) "
            "where n <= 2",
            lambda s, word=word: r.select(
                r.where(
                    window_of(
                        s.orders,
                        lambda o: o.tag,
                        (Key("", lambda o: o.amount, is_down=True),),
                        [ranked(word)],
                    ),
                    lambda row: row[1] <= 2,
                ),
                lambda row: (row[0].id,),
            ),
        )
        for word in ("rank()", "dense_rank()")
    },
    **{
        f"a range of {unit}": sql(
            f"select id, sum(amount) over (partition by tag order by {key} "
            f"range between interval 2 {unit} preceding and interval 1 {unit} following) from orders",
            lambda s: r.select(
                window_of(s.orders, lambda o: o.tag, (CUSTOMER,), [summed(Frame("range", -2, 1))]), _values
            ),
        )
        for unit, key in (
            ("days", "date_add(date'2024-02-27', customer)"),
            ("hours", "timestamp'2024-02-27 00:00:00' + customer * interval 1 hour"),
            ("months", "add_months(date'2024-02-27', customer)"),
        )
    },
    "a range of floats": sql(
        "select id, sum(amount) over (partition by tag order by customer * 0.5d "
        "range between 1.0 preceding and 0.5 following) from orders",
        lambda s: r.select(
            window_of(s.orders, lambda o: o.tag, (CUSTOMER,), [summed(Frame("range", -2, 1))]), _values
        ),
    ),
    "a wide frame and one of all": case_of(
        0, (AMOUNT, ID), [summed(Frame("rows", None, None)), summed(Frame("rows", -9, 0))]
    ),
    "frames wider than any partition": case_of(
        2, (ID,), [summed(Frame("rows", -100, -7)), greatest(Frame("rows", 9, 200))]
    ),
    "many offsets": case_of(1, (AMOUNT, ID), [offset("lag", n) for n in range(1, 8)] + [offset("lead", 2)]),
}


def _with_running_sum(t: Tables) -> DataFrame:
    by = Window.partitionBy("tag").orderBy("amount")
    return t.orders.select("id", F.sum("amount").over(by).alias("s"))


def _running_sum(s: Shop) -> Data:
    return r.select(window_of(s.orders, lambda o: o.tag, (AMOUNT,), [summed(_RUNNING)]), _values)


def _with_methods(t: Tables) -> DataFrame:
    by = Window.partitionBy("tag").orderBy(F.col("amount").desc(), F.col("id").desc())
    return t.orders.select(
        "id",
        F.lag("customer", 1).over(by),
        F.lead("customer", 2, -7).over(by),
        F.sum("amount").over(by.rowsBetween(-9, Window.currentRow)),
        F.last("customer", ignorenulls=True).over(by.rowsBetween(Window.unboundedPreceding, -1)),
        F.nth_value("customer", 2).over(by),
        F.ntile(3).over(by),
    )


_BY_METHODS = (
    offset("lag", 1),
    offset("lead", 2, "-7"),
    summed(Frame("rows", -9, 0)),
    picked("last_value", Frame("rows", None, -1), ignores_nulls=True),
    picked("nth_value", Frame("range", None, 0), 2),
    ranked("ntile(3)"),
)

#: What is done to the rows of a window, in the order of Spark's own methods.
OF_FRAMES: dict[str, Case] = {
    "methods of a DataFrame": Case(
        _with_methods,
        lambda s: r.select(window_of(s.orders, lambda o: o.tag, UNTIED[1], _BY_METHODS), _values),
    ),
    "a window in one task": Case(lambda t: _with_running_sum(t).coalesce(1), _running_sum),
    "a window that is cached": Case(lambda t: _with_running_sum(t).cache(), _running_sum),
    "a window that is checkpointed": Case(lambda t: _with_running_sum(t).checkpoint(), _running_sum),
    "a window as an RDD": Case(
        lambda t: t.spark.createDataFrame(_with_running_sum(t).rdd.map(tuple), "id int, s bigint"),
        _running_sum,
    ),
    "a window and itself": Case(
        lambda t: _with_running_sum(t).union(_with_running_sum(t)), lambda s: _running_sum(s) * 2
    ),
    "a window that is shuffled again": Case(
        lambda t: _with_running_sum(t).groupBy("s").agg(F.count("*")),
        lambda s: r.aggregate(_running_sum(s), lambda row: (row[1],), lambda rows: (len(rows),)),
    ),
    "the last rows of a running count": Case(
        lambda t: t.spark.sql("select id, count(*) over (order by amount, id) n from orders").where("n > 9"),
        lambda s: r.where(
            r.select(
                window_of(
                    s.orders,
                    lambda o: (),
                    (AMOUNT, ID),
                    [Function("", lambda order, rows, at: (at + 1, [*range(at + 1)]))],
                ),
                _values,
            ),
            lambda row: row[1] > 9,
        ),
    ),
}

CASES = {**CHOSEN, **OF_FRAMES, **RANDOM}

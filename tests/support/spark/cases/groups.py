"""Cases of groups and windows: queries with their oracles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import functions as F

from tests.support.spark import relational as r
from tests.support.spark.dataframe_oracle import Case, sql
from tests.support.spark.shop import Order, Shop

NO_AQE = {"spark.sql.adaptive.enabled": "false"}


def ids(rows: list[Any]) -> list[int]:
    return sorted(row.id for row in rows)


def amounts(rows: list[Any]) -> int | None:
    return r.total(row.amount for row in rows)


def by_tag(row: Order) -> tuple[Any]:
    return (row.tag,)


def by_amount(row: Order) -> tuple[int, int]:
    return row.amount, row.id


def count_and_sum(rows: list[Any]) -> tuple[int, int | None]:
    return len(rows), amounts(rows)


def pivoted(rows: list[Any]) -> tuple[Any, ...]:
    return tuple(amounts([row for row in rows if row.customer == customer]) for customer in (1, 3, 5))


def sliding(second: int) -> list[int]:
    """The windows of a minute that hold a second, one of which begins every half."""
    last = second // 30 * 30
    return [last - 30, last]


def sessions(s: Shop, sources: Callable[[r.Data, r.Data], r.Sources]) -> r.Data:
    """Until order 12 all of a tag are one session, then each is one. `sources` gets its and the tag's."""
    with_sources: r.Data = []
    for tag, rows in r.groups(s.orders, lambda o: o.tag):
        early = [row for row in rows if row[0].id < 12]
        late = [[row] for row in rows if row[0].id >= 12]
        for session in ([early] if early else []) + late:
            row = (tag, *count_and_sum([order for order, _ in session]))
            with_sources.append((row, sources(session, rows)))
    return with_sources


GROUPS: dict[str, Case] = {
    "groupBy": Case(
        lambda t: t.orders.groupBy("tag").agg(F.count("*"), F.sum("amount")),
        lambda s: r.aggregate(s.orders, by_tag, count_and_sum),
    ),
    "groupBy without AQE": Case(
        lambda t: t.orders.groupBy("tag").agg(F.count("*"), F.sum("amount")),
        lambda s: r.aggregate(s.orders, by_tag, count_and_sum),
        conf=NO_AQE,
    ),
    "groupBy without codegen": Case(
        lambda t: t.orders.where("amount > 0").groupBy("tag").agg(F.count("*"), F.sum("amount")),
        lambda s: r.aggregate(r.where(s.orders, lambda o: o.amount > 0), by_tag, count_and_sum),
        conf={"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"},
    ),
    "groupBy of NaN and both zeros": Case(
        lambda t: t.orders.groupBy("price").agg(F.count("*"), F.sum("amount")),
        lambda s: r.aggregate(s.orders, lambda o: (o.price,), count_and_sum),
    ),
    "groupBy of several keys": Case(
        lambda t: t.orders.groupBy("customer", "tag").agg(F.max("amount")),
        lambda s: r.aggregate(
            s.orders, lambda o: (o.customer, o.tag), lambda rows: (max(row.amount for row in rows),)
        ),
    ),
    "groupBy of an expression": sql(
        "select pmod(amount, 3) m, count(*), sum(amount) from orders where customer is not null group by m",
        lambda s: r.aggregate(
            r.where(s.orders, lambda o: o.customer is not None), lambda o: (o.amount % 3,), count_and_sum
        ),
    ),
    "groupBy whose keys are not shown": sql(
        "select sum(amount) from orders group by customer, tag",
        lambda s: r.select(
            r.aggregate(s.orders, lambda o: (o.customer, o.tag), lambda rows: (amounts(rows),)),
            lambda row: row[2:],
        ),
    ),
    "groupBy of nothing": sql(
        "select tag, count(*) from orders where amount > 1000 group by tag", lambda s: []
    ),
    "aggregates that keep objects": sql(
        "select tag, sort_array(collect_list(id)), sort_array(collect_set(customer)) "
        "from orders group by tag",
        lambda s: r.aggregate(
            s.orders,
            by_tag,
            lambda rows: (ids(rows), sorted({row.customer for row in rows if row.customer is not None})),
        ),
    ),
    "aggregates that sort": sql(
        "select tag, min(name), max(name) from (select tag, string(amount) name from orders) group by tag",
        lambda s: r.aggregate(
            s.orders,
            by_tag,
            lambda rows: (min(str(row.amount) for row in rows), max(str(row.amount) for row in rows)),
        ),
    ),
    "aggregates with filters": sql(
        "select tag, count(*) filter (where amount > 10), max(id) filter (where customer = 3) "
        "from orders group by tag",
        lambda s: r.aggregate(
            s.orders,
            by_tag,
            lambda rows: (
                sum(row.amount > 10 for row in rows),
                max((row.id for row in rows if row.customer == 3), default=None),
            ),
        ),
    ),
    "having": sql(
        "select customer, count(*) n, max(id) from orders group by customer having n > 3 and max(id) > 9",
        lambda s: r.where(
            r.aggregate(s.orders, lambda o: (o.customer,), lambda rows: (len(rows), max(ids(rows)))),
            lambda row: row[1] > 3 and row[2] > 9,
        ),
    ),
    "global aggregate": Case(
        lambda t: t.orders.agg(F.count("*"), F.sum("amount")),
        lambda s: r.aggregate_all(s.orders, count_and_sum),
    ),
    "global aggregate without AQE": Case(
        lambda t: t.orders.where("amount > 0").agg(F.count("*"), F.sum("amount")),
        lambda s: r.aggregate_all(r.where(s.orders, lambda o: o.amount > 0), count_and_sum),
        conf=NO_AQE,
    ),
    "global aggregate of nothing": sql(
        "select count(*), sum(amount) from orders where amount > 1000",
        lambda s: r.aggregate_all([], count_and_sum),
    ),
    "aggregate of aggregates": sql(
        "select tag, max(s), count(*) from (select tag, customer, sum(amount) s "
        "from orders group by tag, customer) "
        "group by tag",
        lambda s: r.aggregate(
            r.aggregate(s.orders, lambda o: (o.tag, o.customer), lambda rows: (amounts(rows),)),
            lambda row: (row[0],),
            lambda rows: (max(row[2] for row in rows), len(rows)),
        ),
    ),
    "global aggregate of aggregates": sql(
        "select max(n) from (select count(*) n from orders where tag is not null group by customer)",
        lambda s: r.aggregate_all(
            r.aggregate(
                r.where(s.orders, lambda o: o.tag is not None),
                lambda o: (o.customer,),
                lambda rows: (len(rows),),
            ),
            lambda rows: (max(row[1] for row in rows),),
        ),
    ),
    "distinct": Case(
        lambda t: t.orders.select("tag", "customer").distinct(),
        lambda s: r.distinct(r.select(s.orders, lambda o: (o.tag, o.customer))),
    ),
    "distinct of NaN and both zeros": Case(
        lambda t: t.orders.select("price").distinct(),
        lambda s: r.distinct(r.select(s.orders, lambda o: (o.price,))),
    ),
    "distinct, twice over": Case(
        lambda t: t.orders.select("tag", "customer").distinct().select("tag").distinct(),
        lambda s: r.distinct(r.select(s.orders, by_tag)),
    ),
    "count distinct": sql(
        "select tag, count(distinct customer) from orders group by tag",
        lambda s: r.aggregate(
            s.orders, by_tag, lambda rows: (r.count_distinct(row.customer for row in rows),)
        ),
    ),
    "count distinct with filters": sql(
        "select tag, count(distinct customer) filter (where amount > 3), "
        "sum(distinct customer) filter (where amount <= 3) from orders group by tag",
        lambda s: r.aggregate(
            s.orders,
            by_tag,
            lambda rows: (
                r.count_distinct(row.customer for row in rows if row.amount > 3),
                r.total({row.customer for row in rows if row.amount <= 3}),
            ),
        ),
    ),
    "having without groups": sql(
        "select sum(amount) from orders having count(*) > 3",
        lambda s: r.aggregate_all(s.orders, lambda rows: (amounts(rows),)),
    ),
    "several count distincts": sql(
        "select tag, count(distinct customer), count(distinct price), sum(amount), count(*) "
        "from orders group by tag",
        lambda s: r.aggregate(
            s.orders,
            by_tag,
            lambda rows: (
                r.count_distinct(row.customer for row in rows),
                r.count_distinct(row.price for row in rows),
                amounts(rows),
                len(rows),
            ),
        ),
    ),
    "several count distincts of all": sql(
        "select count(distinct customer), count(distinct tag), count(*) from orders",
        lambda s: r.aggregate_all(
            s.orders,
            lambda rows: (
                r.count_distinct(row.customer for row in rows),
                r.count_distinct(row.tag for row in rows),
                len(rows),
            ),
        ),
    ),
    "dropDuplicates": Case(
        lambda t: t.orders.dropDuplicates(["tag"]).select("tag"),
        lambda s: r.distinct(r.select(s.orders, by_tag)),
    ),
    "dropDuplicates of equal rows": Case(
        lambda t: t.orders.select("tag", "price").dropDuplicates(),
        lambda s: r.distinct(r.select(s.orders, lambda o: (o.tag, o.price))),
    ),
    "rollup": sql(
        "select tag, customer, count(*), sum(amount) from orders group by rollup(tag, customer)",
        lambda s: r.grouping_sets(s.orders, lambda o: (o.tag, o.customer), [(), (0,), (0, 1)], count_and_sum),
    ),
    "cube": Case(
        lambda t: t.orders.cube("tag", "customer").agg(F.count("*"), F.sum("amount")),
        lambda s: r.grouping_sets(
            s.orders, lambda o: (o.tag, o.customer), [(), (0,), (1,), (0, 1)], count_and_sum
        ),
    ),
    "grouping sets": sql(
        "select tag, customer, count(*), sum(amount) from orders "
        "group by grouping sets ((tag), (customer), ())",
        lambda s: r.grouping_sets(s.orders, lambda o: (o.tag, o.customer), [(0,), (1,), ()], count_and_sum),
    ),
    "grouping sets, one twice": sql(
        "select tag, count(*), sum(amount) from orders group by grouping sets ((tag), (tag), ())",
        lambda s: r.grouping_sets(s.orders, by_tag, [(0,), (0,), ()], count_and_sum),
    ),
    "windows of time that slide": sql(
        "select unix_seconds(at.start), count(*), sum(amount) from "
        "(select *, window(timestamp_seconds(id * 10), '60 seconds', '30 seconds') at from orders) "
        "group by at",
        lambda s: r.aggregate(
            r.explode(s.orders, lambda o: [(start, o) for start in sliding(o.id * 10)]),
            lambda row: (row[0],),
            lambda rows: count_and_sum([order for _, order in rows]),
        ),
    ),
    "sessions": sql(
        "select tag, count(*), sum(amount) from orders "
        "group by tag, session_window(timestamp_seconds(id * if(id < 12, 1, 30)), '20 seconds')",
        lambda s: sessions(s, lambda rows, _: r.all_of(rows)),
        bound=lambda s: sessions(s, lambda _, of_tag: r.all_of(of_tag)),
        exact=False,
    ),
    "pivot": Case(
        lambda t: t.orders.groupBy("tag").pivot("customer", [1, 3, 5]).agg(F.sum("amount")),
        lambda s: r.aggregate(s.orders, by_tag, pivoted),
    ),
    "pivot in SQL": sql(
        "select * from (select tag, customer, amount "
        "from orders) pivot (sum(amount) for customer in (1, 3, 5))",
        lambda s: r.aggregate(s.orders, by_tag, pivoted),
    ),
}


def ranked(row: Order, frame: list[Any]) -> tuple[int, int]:
    return row.id, len(frame)


def until(row: Order, other: Order) -> bool:
    return by_amount(other) <= by_amount(row)


def before(row: Order, frame: list[Any]) -> tuple[int, int | None]:
    """lag(amount)"""
    ordered = sorted(by_amount(other) for other in frame)
    return row.id, ordered[-2][0] if len(ordered) > 1 else None


def framed(frame: str, holds: Callable[[Order, Order], bool], more: str = "") -> Case:
    """A sum over a frame of values. With `more` a row is made of all rows of its partition, too."""

    def oracle(s: Shop) -> r.Data:
        return [
            (
                (
                    row.id,
                    amounts(
                        [matched for matched, _ in r.where(rows, lambda other, row=row: holds(row, other))]
                    ),
                )
                + ((len(rows),) if more else ()),
                r.all_of(rows if more else r.where(rows, lambda other, row=row: holds(row, other))),
            )
            for _, rows in r.groups(s.orders, lambda o: o.tag)
            for row, _ in rows
        ]

    return sql(
        f"select id, sum(amount) over (partition by tag order by amount {frame}){more} from orders", oracle
    )


def numbered(s: Shop) -> r.Data:
    """row_number(), of which each row is a source of its own alone."""
    return [
        (ranked(row, r.where(rows, lambda other, row=row: until(row, other))), place)
        for _, rows in r.groups(s.orders, lambda o: o.tag)
        for row, place in rows
    ]


WINDOWS: dict[str, Case] = {
    "sum over a partition": sql(
        "select id, sum(amount) over (partition by tag) from orders",
        lambda s: r.window(s.orders, by_tag, lambda row, frame: (row.id, amounts(frame))),
    ),
    "sum over a partition of NaN and both zeros": sql(
        "select id, sum(amount) over (partition by price) from orders",
        lambda s: r.window(s.orders, lambda o: (o.price,), lambda row, frame: (row.id, amounts(frame))),
    ),
    "sum over all": sql(
        "select id, sum(amount) over () from orders where amount > 5",
        lambda s: r.window(
            r.where(s.orders, lambda o: o.amount > 5),
            lambda o: (),
            lambda row, frame: (row.id, amounts(frame)),
        ),
    ),
    "sum up to a value": framed("", lambda row, other: other.amount <= row.amount),
    "sum within a distance": framed(
        "range between 3 preceding and 1 following",
        lambda row, other: row.amount - 3 <= other.amount <= row.amount + 1,
    ),
    "sum of all that follow, and of all": framed(
        "range between current row and unbounded following",
        lambda row, other: other.amount >= row.amount,
        more=", count(*) over (partition by tag)",
    ),
    "a frame that is all of the partition": sql(
        "select id, sum(amount) over (partition by tag order by amount "
        "range between unbounded preceding and unbounded following) from orders",
        lambda s: r.window(s.orders, by_tag, lambda row, frame: (row.id, amounts(frame))),
    ),
    "row_number": sql(
        "select id, row_number() over (partition by tag order by amount, id) from orders", numbered
    ),
    "the first of each partition": sql(
        "select id, n from (select *, row_number() over (partition by tag "
        "order by amount, id) n from orders) "
        "where n <= 2",
        lambda s: r.where(numbered(s), lambda row: row[1] <= 2),
    ),
    "lag": sql(
        "select id, lag(amount) over (partition by customer order by amount, id) from orders",
        lambda s: [
            (before(row, [other for other, _ in first]), place | r.all_of(first[-2:]))
            for _, rows in r.groups(s.orders, lambda o: o.customer)
            for row, place in rows
            for first in [
                sorted(
                    r.where(rows, lambda other, row=row: until(row, other)),
                    key=lambda pair: by_amount(pair[0]),
                )
            ]
        ],
    ),
    "window of groups": sql(
        "select tag, sum(amount), sum(sum(amount)) over () from orders group by tag",
        lambda s: [
            ((*row, amounts([order for order, _ in s.orders])), r.all_of(s.orders))
            for row, _ in r.aggregate(s.orders, by_tag, lambda rows: (amounts(rows),))
        ],
    ),
    "windows that know nothing of each other": sql(
        "select id, sum(amount) over (partition by tag), count(*) over (partition by customer) from orders",
        lambda s: [
            (
                (row.id, amounts([other for other, _ in of_tag]), len(of_customer)),
                r.all_of(of_tag) | r.all_of(of_customer),
            )
            for row, _ in s.orders
            for of_tag in [r.where(s.orders, lambda o, row=row: o.tag == row.tag)]
            for of_customer in [r.where(s.orders, lambda o, row=row: o.customer == row.customer)]
        ],
    ),
    "a window over what another one gives": sql(
        "select id, max(n) over (partition by customer) from "
        "(select id, customer, count(*) over (partition by tag) n from orders)",
        lambda s: [
            (
                (row.id, max(sum(o.tag == other.tag for o, _ in s.orders) for other, _ in of_customer)),
                r.all_of(
                    r.where(
                        s.orders,
                        lambda o, tags=frozenset(other.tag for other, _ in of_customer): o.tag in tags,
                    )
                )
                | r.all_of(of_customer),
            )
            for row, _ in s.orders
            for of_customer in [r.where(s.orders, lambda o, row=row: o.customer == row.customer)]
        ],
    ),
    "aggregate over a window": sql(
        "select tag, max(s) from (select tag, sum(amount) over (partition by tag) s "
        "from orders) group by tag",
        lambda s: r.aggregate(s.orders, by_tag, lambda rows: (amounts(rows),)),
    ),
}


CASES = {**GROUPS, **WINDOWS}

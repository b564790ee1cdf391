"""Cases of subqueries and nested queries: queries with their oracles."""

from __future__ import annotations

from typing import Any

from tests.support.spark import relational as r
from tests.support.spark.dataframe_oracle import Case, sql
from tests.support.spark.shop import Customer, Label, Order, Shop

NO_AQE = {"spark.sql.adaptive.enabled": "false"}


MERGE = {"spark.sql.autoBroadcastJoinThreshold": "-1"}


def buys(order: Order, customer: Customer) -> bool:
    return r.equal(order.customer, customer.key)


def named(pair: tuple[Order | None, Customer | None]) -> tuple[int | None, str | None]:
    order, customer = pair
    return order.id if order else None, customer.name if customer else None


def tagged(order: Order, label: Label) -> bool:
    return r.equal(order.tag, label.tag)


def none_is_3(order: Order, customer: Customer) -> bool:
    return r.equal(3 if order.customer is None else order.customer, customer.key)


def bought_by_3(order: Order, customer: Customer) -> bool:
    return r.equal(order.customer, 3 if customer.key is None else customer.key)


def large_or(meets: Any) -> Any:
    """Orders that are large or have matches."""
    return lambda s: r.select(
        r.where(
            r.matched(s.orders, s.customers, meets),
            lambda o: o.amount > 25 or any(meets(o, c) for c, _ in s.customers),
        ),
        id_of,
    )


def id_of(row: Order) -> tuple[int]:
    return (row.id,)


def tags(s: Shop, kept: Any = lambda o: True) -> r.Data:
    return r.select(r.where(s.orders, kept), lambda o: (o.tag,))


def above_average(s: Shop, of: Any = lambda o: True) -> r.Data:
    rows = r.where(s.orders, of)
    average = sum(row.amount for row, _ in rows) / len(rows)
    return [(row, place | r.all_of(rows)) for row, place in s.orders if row.amount > average]


SUBQUERIES: dict[str, Case] = {
    "scalar subquery": sql(
        "select id from orders where amount > (select avg(amount) from orders)",
        lambda s: r.select(above_average(s), id_of),
    ),
    "scalar subquery without AQE": sql(
        "select id from orders where amount > (select avg(amount) from orders where tag = 'x')",
        lambda s: r.select(above_average(s, lambda o: o.tag == "x"), id_of),
        conf=NO_AQE,
    ),
    "two scalar subqueries": sql(
        "select id, (select max(weight) from labels) - (select count(*) "
        "from customers where key > 1) from orders",
        lambda s: [
            (
                (row.id, 7 - sum((c.key or 0) > 1 for c, _ in s.customers)),
                place | r.all_of(s.labels) | r.all_of(r.where(s.customers, lambda c: (c.key or 0) > 1)),
            )
            for row, place in s.orders
        ],
    ),
    "two scalar subqueries of one table": sql(
        "select tag from labels where weight > (select min(key) from customers) "
        "and weight < (select max(key) from customers)",
        lambda s: [
            ((row.tag,), place | r.all_of(s.customers)) for row, place in s.labels if -1 < row.weight < 7
        ],
    ),
    "scalar subquery of nothing": sql(
        "select id, (select sum(weight) from labels where weight > 100) from orders",
        lambda s: r.select(s.orders, lambda o: (o.id, None)),
    ),
    "scalar subquery of one row": sql(
        "select id from orders where customer = (select key from customers where name = 'eve') - 1",
        lambda s: [
            ((row.id,), place | r.all_of(r.where(s.customers, lambda c: c.name == "eve")))
            for row, place in s.orders
            if row.customer == 3
        ],
    ),
    "correlated scalar subquery": sql(
        "select id from orders o where amount >= (select max(amount) from orders p where p.tag = o.tag)",
        lambda s: r.select(
            r.where(
                r.matched(s.orders, s.orders, lambda o, p: r.equal(o.tag, p.tag)),
                lambda o: (
                    o.tag is not None and o.amount >= max(p.amount for p, _ in s.orders if p.tag == o.tag)
                ),
            ),
            id_of,
        ),
    ),
    "correlated scalar subquery in select": sql(
        "select id, (select sum(weight) from labels label where label.tag = o.tag) from orders o",
        lambda s: r.select(
            r.matched(s.orders, s.labels, tagged),
            lambda o: (o.id, r.total(label.weight for label, _ in s.labels if tagged(o, label))),
        ),
    ),
    "correlated count": sql(
        "select id, (select count(*) from customers where key = customer) from orders",
        lambda s: r.select(
            r.matched(s.orders, s.customers, buys),
            lambda o: (o.id, sum(buys(o, c) for c, _ in s.customers)),
        ),
    ),
    "IN": sql(
        "select id from orders where customer in (select key from customers where name <> 'ann')",
        lambda s: r.select(r.semi(s.orders, s.customers, lambda o, c: buys(o, c) and c.name != "ann"), id_of),
    ),
    "NOT IN": sql(
        "select id from orders where customer not in (select key from customers where key > 2)",
        lambda s: r.select(
            r.where(s.orders, lambda o: o.customer is not None and o.customer not in (3, 4, 7)), id_of
        ),
    ),
    "NOT IN of nulls": sql(
        "select id from orders where customer not in (select key from customers)", lambda s: []
    ),
    "EXISTS": sql(
        "select id from orders o where exists (select 1 from customers "
        "where key = o.customer and name <> 'bo')",
        lambda s: r.select(r.semi(s.orders, s.customers, lambda o, c: buys(o, c) and c.name != "bo"), id_of),
    ),
    "NOT EXISTS": sql(
        "select id from orders o where not exists (select * from labels label where label.tag = o.tag)",
        lambda s: r.select(r.anti(s.orders, s.labels, tagged), id_of),
    ),
    "EXISTS that asks of no row": sql(
        "select id from orders where amount > 20 and exists (select 1 from customers where name = 'eve')",
        lambda s: [
            ((row.id,), place | r.all_of(r.where(s.customers, lambda c: c.name == "eve")))
            for row, place in s.orders
            if row.amount > 20
        ],
        exact=False,  # of several it would give the first
    ),
    "EXISTS, or a condition": sql(
        "select id from orders o where amount > 25 or exists (select 1 "
        "from customers where key = o.customer)",
        large_or(buys),
    ),
    "EXISTS of what is never null, or a condition": sql(
        "select id from orders where amount > 25 or exists (select 1 "
        "from customers where key = coalesce(customer, 3))",
        large_or(none_is_3),
    ),
    "EXISTS among what is never null, or a condition": sql(
        "select id from orders where amount > 25 or exists (select 1 "
        "from customers where coalesce(key, 3) = customer)",
        large_or(bought_by_3),
    ),
    "IN of what is never null, or a condition": sql(
        "select id from orders where amount > 25 or coalesce(customer, 3) in (select key from customers)",
        large_or(none_is_3),
    ),
    "IN among what is never null": sql(
        "select id from orders where customer in (select coalesce(key, 3) from customers)",
        lambda s: r.select(r.semi(s.orders, s.customers, bought_by_3), id_of),
    ),
    "two EXISTS, or-ed": sql(
        "select id from orders o where exists (select 1 from customers where key = o.customer) "
        "or exists (select 1 from labels label where label.tag = o.tag and weight > 1)",
        lambda s: r.select(
            r.where(
                r.matched(
                    r.matched(s.orders, s.customers, buys),
                    s.labels,
                    lambda o, label: tagged(o, label) and label.weight > 1,
                ),
                lambda o: (
                    any(buys(o, c) for c, _ in s.customers)
                    or any(tagged(o, label) and label.weight > 1 for label, _ in s.labels)
                ),
            ),
            id_of,
        ),
    ),
    "IN, or a condition": sql(
        "select id from orders where amount < 0 or tag in (select tag from labels)",
        lambda s: r.select(
            r.where(
                r.matched(s.orders, s.labels, tagged),
                lambda o: o.amount < 0 or o.tag in ("x", "ß", "w"),
            ),
            id_of,
        ),
    ),
    "CTE": sql(
        "with big as (select * from orders where amount > 10) select tag, count(*) from big group by tag",
        lambda s: r.aggregate(tags(s, lambda o: o.amount > 10), lambda row: row, lambda rows: (len(rows),)),
    ),
    "CTE, twice": sql(
        "with sums as (select tag, sum(amount) s from orders group by tag) "
        "select a.tag, b.tag as other, a.s - b.s from sums a join sums b on a.s < b.s",
        lambda s: r.select(
            r.join(sums(s), sums(s), lambda a, b: a[1] < b[1]),
            lambda p: (p[0][0], p[1][0], p[0][1] - p[1][1]),
        ),
    ),
    "CTE, twice, whose exchange is used again": sql(
        "with sums as (select tag, sum(amount) s from orders group by tag) "
        "select a.tag, b.tag as other, a.s from sums a join sums b on a.s = b.s",
        lambda s: r.select(
            r.join(sums(s), sums(s), lambda a, b: r.equal(a[1], b[1])), lambda p: (p[0][0], p[1][0], p[0][1])
        ),
        conf={**MERGE, **NO_AQE},
    ),
    "CTE, twice, computed in two stages that are split in two ways": sql(
        "with counts as (select tag, count(*) n from orders group by tag), "
        "most as (select tag, n, max(n) over (partition by tag) m from counts) "
        "select a.tag, a.m + b.m as two from most a join "
        "(select key as m from customers union all select m from most) b on a.n = b.m",
        lambda s: r.select(
            r.join(
                counts(s),
                r.select(s.customers, lambda c: c.key) + r.select(counts(s), lambda row: row[1]),
                lambda a, m: r.equal(a[1], m),
            ),
            lambda p: (p[0][0], p[0][1] + p[1]),
        ),
        exact=None,
        conf={**MERGE, **NO_AQE},
    ),
    "scalar subquery, twice": sql(
        "select id, amount from orders where amount > (select avg(weight) from labels) "
        "or id > (select avg(weight) from labels)",
        lambda s: [
            (row, sources | r.all_of(s.labels))
            for row, sources in r.select(
                r.where(s.orders, lambda o: o.amount > 7 / 3 or o.id > 7 / 3), lambda o: (o.id, o.amount)
            )
        ],
    ),
}


def counts(s: Shop) -> r.Data:
    return r.aggregate(s.orders, lambda o: (o.tag,), lambda rows: (len(rows),))


def sums(s: Shop) -> r.Data:
    return r.aggregate(s.orders, lambda o: (o.tag,), lambda rows: (r.total(row.amount for row in rows),))


def weights(s: Shop) -> r.Data:
    return r.aggregate(s.labels, lambda label: (label.tag,), lambda rows: (sum(row.weight for row in rows),))


def sum_by_name(s: Shop) -> r.Data:
    return r.aggregate(
        r.select(r.join(s.orders, s.customers, buys), lambda p: (p[1].name, p[0].amount)),
        lambda row: (row[0],),
        lambda rows: (len(rows), sum(row[1] for row in rows)),
    )


NESTED: dict[str, Case] = {
    "aggregate of a join": sql(
        "select name, count(*), sum(amount) from orders join customers on customer = key group by name",
        sum_by_name,
    ),
    "aggregate of a join, sort-merge": sql(
        "select name, count(*), sum(amount) from orders join customers on customer = key group by name",
        sum_by_name,
        conf=MERGE | NO_AQE,
    ),
    "join of aggregates": sql(
        "select a.tag, s, w from (select tag, sum(amount) s from orders group by tag) a "
        "join (select tag, sum(weight) w from labels group by tag) b on a.tag = b.tag",
        lambda s: r.select(
            r.join(sums(s), weights(s), lambda a, b: r.equal(a[0], b[0])), lambda p: (*p[0], p[1][1])
        ),
    ),
    "join of aggregates, sort-merge, full": sql(
        "select a.tag, s, w from (select tag, sum(amount) s from orders group by tag) a "
        "full join (select tag, sum(weight) w from labels group by tag) b on a.tag = b.tag",
        lambda s: r.select(
            r.join(sums(s), weights(s), lambda a, b: r.equal(a[0], b[0]), keep_left=True, keep_right=True),
            lambda p: (*(p[0] or (None, None)), p[1] and p[1][1]),
        ),
        conf=MERGE,
    ),
    "join of a table with its own aggregate": sql(
        "select id, s from orders o join (select tag, sum(amount) s "
        "from orders group by tag) t on o.tag = t.tag",
        lambda s: r.select(
            r.join(s.orders, sums(s), lambda o, t: r.equal(o.tag, t[0])), lambda p: (p[0].id, p[1][1])
        ),
        conf=MERGE,
    ),
    "window over a join": sql(
        "select id, name, count(*) over (partition by name) from orders join customers on customer = key",
        lambda s: r.window(
            r.select(r.join(s.orders, s.customers, buys), named),
            lambda row: row[1],
            lambda row, frame: (*row, len(frame)),
        ),
        exact=None,
    ),
    "union of aggregates": sql(
        "select tag, sum(amount) from orders group by tag "
        "union all select tag, sum(weight) from labels group by tag",
        lambda s: sums(s) + weights(s),
    ),
    "aggregate of a union of aggregates": sql(
        "select tag, max(n) from (select tag, sum(amount) n from orders group by tag "
        "union all select tag, sum(weight) n from labels group by tag) group by tag",
        lambda s: r.aggregate(
            sums(s) + weights(s),
            lambda row: (row[0],),
            lambda rows: (max(row[1] for row in rows),),
        ),
    ),
    "subquery in a join": sql(
        "select id, name from orders join customers on customer = key "
        "where key in (select weight from labels) and amount > (select min(weight) from labels)",
        lambda s: [
            (row, sources | r.all_of(s.labels))
            for row, sources in r.select(
                r.where(
                    r.join(s.orders, s.customers, buys),
                    lambda p: p[1].key in {label.weight for label, _ in s.labels} and p[0].amount > -2,
                ),
                named,
            )
        ],
    ),
    "limit of a join of a distinct": sql(
        "select c, name from (select distinct customer c from orders) join customers on c = key "
        "order by c, name limit 4",
        lambda s: r.select(
            sorted(
                r.join(
                    r.distinct(r.select(s.orders, lambda o: (o.customer,))),
                    s.customers,
                    lambda o, c: r.equal(o[0], c.key),
                ),
                key=lambda row: (row[0][0][0], row[0][1].name),
            )[:4],
            lambda p: (p[0][0], p[1].name),
        ),
    ),
    "explode of an aggregate of an explode": sql(
        "select item, id from (select item, collect_list(id) all from "
        "(select id, explode(items) item from baskets) group by item) lateral view explode(all) as id",
        lambda s: r.explode(
            r.aggregate(
                r.explode(s.baskets, lambda b: [(item, b.id) for item in b.items or []]),
                lambda row: (row[0],),
                lambda rows: (rows,),
            ),
            lambda row: [(row[0], id) for _, id in row[1]],
        ),
    ),
}


CASES = {**SUBQUERIES, **NESTED}

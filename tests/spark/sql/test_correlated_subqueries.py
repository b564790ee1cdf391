"""Subqueries of which Spark makes other joins than they look like, and those within other operators.

Traced row by row and compared with plain Python.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.lanes import sampled
from tests.support.spark import relational as r
from tests.support.spark.dataframe_oracle import Case, Ran, sql, without_lineage
from tests.support.spark.shop import Customer, Label, Order, Shop

# The first test of the module runs the queries of all of them.
pytestmark = pytest.mark.timeout(1800)


def buys(order: Order, customer: Customer) -> bool:
    return r.equal(order.customer, customer.key)


def tagged(order: Order, label: Label) -> bool:
    return r.equal(order.tag, label.tag)


def id_of(row: Order) -> tuple[int]:
    return (row.id,)


def has_no_label(s: Shop, order: Order) -> bool:
    return not any(tagged(order, label) for label, _ in s.labels)


def lighter(s: Shop, order: Order) -> r.Data:
    """Labels that weigh less than the order's customer is numbered."""
    return r.where(s.labels, lambda label: order.customer is not None and label.weight < order.customer)


def tagged_as(s: Shop, tag: str) -> r.Data:
    return r.where(s.orders, lambda order: order.tag == tag)


DENIED: dict[str, Case] = {
    "NOT EXISTS, or a condition": sql(
        "select id from orders o where amount > 5 or not exists (select 1 from labels l where l.tag = o.tag)",
        lambda s: r.select(r.where(s.orders, lambda o: o.amount > 5 or has_no_label(s, o)), id_of),
    ),
    "NOT IN, or a condition": sql(
        "select id from orders where amount > 5 or customer not in (select key from customers where key > 2)",
        lambda s: r.select(
            r.where(s.orders, lambda o: o.amount > 5 or o.customer not in (None, 3, 4, 7)), id_of
        ),
    ),
    "EXISTS, or NOT EXISTS": sql(
        "select id from orders o where exists (select 1 from customers where key = o.customer) "
        "or not exists (select 1 from labels l where l.tag = o.tag)",
        lambda s: r.select(
            r.where(
                r.matched(s.orders, s.customers, buys),
                lambda o: any(buys(o, c) for c, _ in s.customers) or has_no_label(s, o),
            ),
            id_of,
        ),
    ),
    "NOT EXISTS that is shown": sql(
        "select id, not exists (select 1 from labels l where l.tag = o.tag) from orders o",
        lambda s: r.select(r.matched(s.orders, s.labels, tagged), lambda o: (o.id, has_no_label(s, o))),
    ),
    "NOT EXISTS that is shown, or a condition": sql(
        "select id, n from (select id, amount, not exists (select 1 from labels l where l.tag = o.tag) n "
        "from orders o) where n or amount > 5",
        lambda s: r.select(
            r.where(r.matched(s.orders, s.labels, tagged), lambda o: o.amount > 5 or has_no_label(s, o)),
            lambda o: (o.id, has_no_label(s, o)),
        ),
    ),
    "EXISTS that asks of no row, of many": sql(
        "select id from orders where amount > 20 and exists (select 1 from customers where key > 1)",
        lambda s: r.select(r.where(s.orders, lambda o: o.amount > 20), id_of),
        bound=lambda s: [
            ((row.id,), place | r.all_of(r.where(s.customers, lambda c: (c.key or 0) > 1)))
            for row, place in s.orders
        ],
        exact=False,
    ),
}

SINGLE: dict[str, Case] = {
    "correlated scalar subquery of one row": sql(
        "select id, (select name from customers where key = customer and name <> 'bo') from orders",
        lambda s: r.select(
            r.join(s.orders, r.where(s.customers, lambda c: c.name != "bo"), buys, keep_left=True),
            lambda p: (p[0].id, p[1].name if p[1] else None),
        ),
    ),
}

#: Spark computes these for all different values of the query around them.
FOR_EACH_VALUE: dict[str, Case] = {
    "correlated sum by less than": sql(
        "select id, (select sum(weight) from labels where weight < customer) from orders",
        lambda s: [
            (
                (row.id, r.total(label.weight for label, _ in lighter(s, row))),
                place | r.all_of(lighter(s, row)),
            )
            for row, place in s.orders
        ],
    ),
    "lateral count by less than": sql(
        "select id, n from orders, lateral (select count(*) n from labels where weight < customer)",
        lambda s: [
            ((row.id, len(lighter(s, row))), place | r.all_of(lighter(s, row))) for row, place in s.orders
        ],
    ),
    "lateral count of different values by less than": sql(
        "select id, n from orders, lateral "
        "(select count(*) n from (select distinct weight from labels) where weight < customer)",
        lambda s: [
            ((row.id, len({label.weight for label, _ in lighter(s, row)})), place | r.all_of(lighter(s, row)))
            for row, place in s.orders
        ],
    ),
    "lateral sum of different values": sql(
        "select c, n from (select distinct customer c from orders where id > 3), lateral "
        "(select sum(weight) n from labels where weight < c)",
        lambda s: [
            (
                (row[0], r.total(label.weight for label, _ in r.where(s.labels, of_less(row[0])))),
                place | r.all_of(r.where(s.labels, of_less(row[0]))),
            )
            for row, place in r.distinct(
                r.select(r.where(s.orders, lambda o: o.id > 3), lambda o: (o.customer,))
            )
        ],
    ),
    "lateral of the first of each": sql(
        "select id, w from orders o, lateral "
        "(select weight w from labels l where l.tag = o.tag order by weight limit 1)",
        lambda s: [
            ((row.id, least[0].weight), place | least[1])
            for row, place in s.orders
            for least in first_of(s, row)
        ],
    ),
}


def of_less(than: int | None) -> Any:
    return lambda label: than is not None and label.weight < than


def labels_of(s: Shop, order: Order) -> r.Data:
    return r.where(s.labels, lambda label: tagged(order, label))


def first_of(s: Shop, order: Order) -> r.Data:
    return sorted(labels_of(s, order), key=lambda row: row[0].weight)[:1]


def with_labels(data: r.Data, s: Shop) -> r.Data:
    return [(row, sources | r.all_of(s.labels)) for row, sources in data]


#: Seven is the most that a label weighs.
WITHIN: dict[str, Case] = {
    "scalar subquery beside an aggregate": sql(
        "select sum(amount) + (select max(weight) from labels) from orders",
        lambda s: with_labels(
            r.aggregate_all(s.orders, lambda rows: (sum(row.amount for row in rows) + 7,)), s
        ),
    ),
    "scalar subquery within an aggregate": sql(
        "select tag, sum(amount + (select max(weight) from labels)) from orders group by tag",
        lambda s: with_labels(
            r.aggregate(s.orders, lambda o: (o.tag,), lambda rows: (sum(row.amount + 7 for row in rows),)),
            s,
        ),
    ),
    "scalar subquery within several count distincts": sql(
        "select tag, count(distinct amount > (select max(weight) from labels)), count(distinct customer) "
        "from orders group by tag",
        lambda s: with_labels(
            r.aggregate(
                s.orders,
                lambda o: (o.tag,),
                lambda rows: (
                    r.count_distinct(row.amount > 7 for row in rows),
                    r.count_distinct(row.customer for row in rows),
                ),
            ),
            s,
        ),
    ),
    "groupBy of a scalar subquery": sql(
        "select count(*) from orders group by amount > (select max(weight) from labels)",
        lambda s: with_labels(
            r.select(
                r.aggregate(s.orders, lambda o: (o.amount > 7,), lambda rows: (len(rows),)),
                lambda row: row[1:],
            ),
            s,
        ),
    ),
    "rollup of a scalar subquery": sql(
        "select amount > (select max(weight) from labels) b, tag, count(*) "
        "from orders group by rollup(b, tag)",
        lambda s: with_labels(
            r.grouping_sets(
                s.orders, lambda o: (o.amount > 7, o.tag), [(0, 1), (0,), ()], lambda rows: (len(rows),)
            ),
            s,
        ),
    ),
    "scalar subquery within a window": sql(
        "select id, sum(amount + (select max(weight) from labels)) over (partition by tag) from orders",
        lambda s: with_labels(
            r.window(
                s.orders,
                lambda o: o.tag,
                lambda row, frame: (row.id, sum(other.amount + 7 for other in frame)),
            ),
            s,
        ),
    ),
    "scalar subquery within a scalar subquery": sql(
        "select id, (select sum(weight + (select max(key) from customers)) from labels) from orders",
        lambda s: [
            ((row.id, 14 + 6 * 7), place | r.all_of(s.labels) | r.all_of(s.customers))
            for row, place in s.orders
        ],
    ),
}

OF_NAMES: dict[str, Case] = {
    "a scalar subquery that is called as a filter of Spark's own": sql(
        "select id from orders where amount > (select avg(weight) bloom_filter from labels)",
        lambda s: [
            ((row.id,), place | r.all_of(s.labels))
            for row, place in s.orders
            if row.amount > r.total(label.weight for label, _ in s.labels) / len(s.labels)
        ],
    ),
    "a query with a name in another one, each read twice": sql(
        "with x as (select id, rand(1) r from orders), y as (select id, r, rand(2) q from x) "
        "select y.id from y join x on y.id = x.id join y z on z.id = y.id",
        lambda s: r.select(s.orders, id_of),
    ),
    "aggregates of one table under several conditions": sql(
        "select 1 w, count(*) n from orders where tag = 'x' union all "
        "select 2, count(*) from orders where tag = 'y' union all select 3, count(*) from orders",
        lambda s: [
            ((which, len(rows)), r.all_of(rows))
            for which, rows in enumerate((tagged_as(s, "x"), tagged_as(s, "y"), s.orders), 1)
        ],
        bound=lambda s: [
            ((which, len(rows)), r.all_of(s.orders))
            for which, rows in enumerate((tagged_as(s, "x"), tagged_as(s, "y"), s.orders), 1)
        ],
        exact=None,
    ),
}

CASES = {**OF_NAMES, **DENIED, **SINGLE, **FOR_EACH_VALUE, **WITHIN}
PLAIN = without_lineage(CASES)


@pytest.mark.thorough
@pytest.mark.parametrize("name", PLAIN)
def test_spark_writes_what_the_oracle_says(name: str, plain: Ran) -> None:
    plain.check_rows(name)


@pytest.mark.parametrize("name", sampled(CASES, 3))
def test_traces_equal_the_oracle(name: str, plain: Ran, traced: Ran) -> None:
    traced.check(name, plain)

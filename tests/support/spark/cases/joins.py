"""Cases of joins and set operations: queries with their oracles."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as F

from tests.support.spark import relational as r
from tests.support.spark.dataframe_oracle import Case, sql
from tests.support.spark.shop import Customer, Label, Order, Shop

NO_AQE = {"spark.sql.adaptive.enabled": "false"}


MERGE = {"spark.sql.autoBroadcastJoinThreshold": "-1"}


STRATEGIES = {
    "broadcast": {},
    "sort-merge": MERGE,
    "shuffled hash": {**MERGE, "spark.sql.join.forceApplyShuffledHashJoin": "true"},
}


def buys(order: Order, customer: Customer) -> bool:
    return r.equal(order.customer, customer.key)


def named(pair: tuple[Order | None, Customer | None]) -> tuple[int | None, str | None]:
    order, customer = pair
    return order.id if order else None, customer.name if customer else None


def tagged(order: Order, label: Label) -> bool:
    return r.equal(order.tag, label.tag)


def id_of(row: Order) -> tuple[int]:
    return (row.id,)


def both(pair: tuple[Order, Order]) -> tuple[int, int]:
    return pair[0].id, pair[1].id


def tags(s: Shop, kept: Any = lambda o: True) -> r.Data:
    return r.select(r.where(s.orders, kept), lambda o: (o.tag,))


def label_tags(s: Shop) -> r.Data:
    return r.select(s.labels, lambda label: (label.tag,))


#: kind -> (query, oracle)
KINDS: dict[str, tuple[str, Any]] = {
    "inner": (
        "select id, name from orders join customers on customer = key",
        lambda s: r.select(r.join(s.orders, s.customers, buys), named),
    ),
    "left": (
        "select id, name from orders left join customers on customer = key",
        lambda s: r.select(r.join(s.orders, s.customers, buys, keep_left=True), named),
    ),
    "right": (
        "select id, name from orders right join customers on customer = key",
        lambda s: r.select(r.join(s.orders, s.customers, buys, keep_right=True), named),
    ),
    "full": (
        "select id, name from orders full join customers on customer = key",
        lambda s: r.select(r.join(s.orders, s.customers, buys, keep_left=True, keep_right=True), named),
    ),
    "semi": (
        "select id from orders left semi join customers on customer = key",
        lambda s: r.select(r.semi(s.orders, s.customers, buys), id_of),
    ),
    "anti": (
        "select id from orders left anti join customers on customer = key",
        lambda s: r.select(r.anti(s.orders, s.customers, buys), id_of),
    ),
}


JOINS: dict[str, Case] = {
    **{
        f"{kind} join, {strategy}": sql(*KINDS[kind], conf=conf)
        for strategy, conf in STRATEGIES.items()
        for kind in KINDS
    },
    **{
        f"{kind} join without AQE": sql(*KINDS[kind], conf=NO_AQE | MERGE)
        for kind in ("inner", "full", "semi")
    },
    **{
        f"{kind} join without AQE, operator by operator": sql(
            KINDS[kind][0].replace("select id", "select -id as id"),
            lambda s, kind=kind: r.select(KINDS[kind][1](s), lambda row: (row[0] and -row[0], row[1])),
            conf=NO_AQE | MERGE | {"spark.sql.codegen.wholeStage": "false"},
        )
        for kind in ("left", "right", "full")
    },
    "cross join": Case(
        lambda t: t.orders.where("id < 4").crossJoin(t.labels).select("id", "weight"),
        lambda s: r.select(
            r.join(r.where(s.orders, lambda o: o.id < 4), s.labels), lambda p: (p[0].id, p[1].weight)
        ),
    ),
    "cartesian product": sql(
        "select id, weight from orders cross join labels where id < 4",
        lambda s: r.select(
            r.join(r.where(s.orders, lambda o: o.id < 4), s.labels), lambda p: (p[0].id, p[1].weight)
        ),
        conf=MERGE,
    ),
    "non-equi join": sql(
        "select id, weight from orders join labels on amount < weight",
        lambda s: r.select(
            r.join(s.orders, s.labels, lambda o, label: o.amount < label.weight),
            lambda p: (p[0].id, p[1].weight),
        ),
    ),
    "non-equi left join": sql(
        "select id, weight from orders left join labels on amount < weight",
        lambda s: r.select(
            r.join(s.orders, s.labels, lambda o, label: o.amount < label.weight, keep_left=True),
            lambda p: (p[0].id, p[1] and p[1].weight),
        ),
    ),
    "non-equi full join": sql(
        "select id, weight from orders full join labels on amount + 4 < weight",
        lambda s: r.select(
            r.join(
                s.orders,
                s.labels,
                lambda o, label: o.amount + 4 < label.weight,
                keep_left=True,
                keep_right=True,
            ),
            lambda p: (p[0] and p[0].id, p[1] and p[1].weight),
        ),
    ),
    "non-equi semi join": sql(
        "select id from orders left semi join labels on amount < weight",
        lambda s: r.select(r.semi(s.orders, s.labels, lambda o, label: o.amount < label.weight), id_of),
        bound=lambda s: r.select([(o, sources | r.all_of(s.labels)) for o, sources in s.orders], id_of),
        exact=False,
    ),
    "non-equi anti join": sql(
        "select id from orders left anti join labels on amount < weight",
        lambda s: r.select(r.anti(s.orders, s.labels, lambda o, label: o.amount < label.weight), id_of),
    ),
    "join with one more condition": sql(
        "select id, name from orders left join customers on customer = key "
        "and amount > 10 and length(name) < 3",
        lambda s: r.select(
            r.join(
                s.orders,
                s.customers,
                lambda o, c: buys(o, c) and o.amount > 10 and len(c.name) < 3,
                keep_left=True,
            ),
            named,
        ),
    ),
    "self-join": sql(
        "select a.id, b.id as other from orders a join orders b on a.customer = b.customer and a.id < b.id",
        lambda s: r.select(
            r.join(s.orders, s.orders, lambda a, b: r.equal(a.customer, b.customer) and a.id < b.id), both
        ),
    ),
    "self-join, sort-merge": Case(
        lambda t: (
            t.orders.alias("a")
            .join(t.orders.alias("b"), F.expr("a.customer = b.customer and a.id < b.id"))
            .selectExpr("a.id as one", "b.id as other")
        ),
        lambda s: r.select(
            r.join(s.orders, s.orders, lambda a, b: r.equal(a.customer, b.customer) and a.id < b.id), both
        ),
        conf=MERGE,
    ),
    "self-join on NaN and both zeros": sql(
        "select a.id, b.id as other from orders a join orders b on a.price = b.price where a.id < b.id",
        lambda s: r.select(
            r.join(s.orders, s.orders, lambda a, b: r.equal(a.price, b.price) and a.id < b.id), both
        ),
    ),
    "null-safe join": sql(
        "select id, name from orders join customers on customer <=> key",
        lambda s: r.select(r.join(s.orders, s.customers, lambda o, c: r.same(o.customer, c.key)), named),
    ),
    "null-safe full join": sql(
        "select id, weight from orders o full join labels l on o.tag <=> l.tag",
        lambda s: r.select(
            r.join(
                s.orders, s.labels, lambda o, label: r.same(o.tag, label.tag), keep_left=True, keep_right=True
            ),
            lambda p: (p[0] and p[0].id, p[1] and p[1].weight),
        ),
    ),
    "null-safe semi join": sql(
        "select id from orders o left semi join labels l on o.tag <=> l.tag",
        lambda s: r.select(r.semi(s.orders, s.labels, lambda o, label: r.same(o.tag, label.tag)), id_of),
    ),
    "full join using a column": sql(
        "select tag, id, weight from orders full join labels using (tag)",
        lambda s: r.select(
            r.join(s.orders, s.labels, tagged, keep_left=True, keep_right=True),
            lambda p: (p[0].tag if p[0] else p[1].tag, p[0] and p[0].id, p[1] and p[1].weight),
        ),
    ),
    "natural join": sql(
        "select id, weight from orders natural join labels",
        lambda s: r.select(r.join(s.orders, s.labels, tagged), lambda p: (p[0].id, p[1].weight)),
    ),
    "full join of what is coalesced, in one task": Case(
        lambda t: (
            t.orders.coalesce(1)
            .join(t.customers.coalesce(1), F.expr("customer = key"), "full")
            .select("id", "name")
        ),
        lambda s: r.select(r.join(s.orders, s.customers, buys, keep_left=True, keep_right=True), named),
        conf=MERGE,
    ),
    "join whose partitions are split": sql(
        "select id, weight from orders o join labels l on o.tag = l.tag",
        lambda s: r.select(r.join(s.orders, s.labels, tagged), lambda p: (p[0].id, p[1].weight)),
        conf={
            **MERGE,
            "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "0.1",
            "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "1",
            "spark.sql.adaptive.forceOptimizeSkewedJoin": "true",
            "spark.sql.adaptive.advisoryPartitionSizeInBytes": "50",
        },
    ),
    "semi join with a join of the same key, interpreted": sql(
        "select a.id from orders a left semi join "
        "(select b.tag from orders b join labels l on b.tag = l.tag) c on a.tag = c.tag",
        lambda s: r.select(
            r.semi(s.orders, r.join(s.orders, s.labels, tagged), lambda a, p: r.equal(a.tag, p[0].tag)), id_of
        ),
        conf={**MERGE, **NO_AQE, "spark.sql.codegen.wholeStage": "false"},
    ),
    "join of several keys": sql(
        "select a.id, b.id as other from orders a join orders b using (customer, tag) where a.id <> b.id",
        lambda s: r.select(
            r.join(
                s.orders,
                s.orders,
                lambda a, b: r.equal(a.customer, b.customer) and r.equal(a.tag, b.tag) and a.id != b.id,
            ),
            both,
        ),
    ),
    "join of three tables": sql(
        "select id, name, weight from orders join customers on customer = key join labels using (tag)",
        lambda s: r.select(
            r.join(r.join(s.orders, s.customers, buys), s.labels, lambda p, label: tagged(p[0], label)),
            lambda p: (*named(p[0]), p[1].weight),
        ),
    ),
    "join of three tables, sort-merge": sql(
        "select id, name, weight from orders left join customers on customer = key join labels using (tag)",
        lambda s: r.select(
            r.join(
                r.join(s.orders, s.customers, buys, keep_left=True),
                s.labels,
                lambda p, label: tagged(p[0], label),
            ),
            lambda p: (*named(p[0]), p[1].weight),
        ),
        conf=MERGE,
    ),
    "join with nothing": sql(
        "select id, name from orders left join (select * from customers where key > 100) on customer = key",
        lambda s: r.select(s.orders, lambda o: (o.id, None)),
    ),
    "lateral join": sql(
        "select id, n from orders, lateral (select name n from customers where key = customer)",
        lambda s: r.select(r.join(s.orders, s.customers, buys), named),
    ),
}


SETS: dict[str, Case] = {
    "union": Case(
        lambda t: t.orders.select("tag", "id").union(t.labels).union(t.labels),
        lambda s: r.select(s.orders, lambda o: (o.tag, o.id)) + r.select(s.labels, tuple) * 2,
    ),
    "union of a table with itself": sql(
        "select id from orders where amount > 10 union all select id from orders where amount > 20",
        lambda s: (
            r.select(r.where(s.orders, lambda o: o.amount > 10), id_of)
            + r.select(r.where(s.orders, lambda o: o.amount > 20), id_of)
        ),
    ),
    "union of many, in one piece of generated code": sql(
        "select id from orders where amount > 10 union all select key from customers where key > 1 "
        "union all select weight from labels where weight < 3 union all select id + 1 from orders "
        "where tag = 'x' union all select id from orders where id > 1000000",
        lambda s: (
            r.select(r.where(s.orders, lambda o: o.amount > 10), id_of)
            + r.select(r.where(s.customers, lambda c: (c.key or 0) > 1), lambda c: (c.key,))
            + r.select(r.where(s.labels, lambda row: row.weight < 3), lambda row: (row.weight,))
            + r.select(r.where(s.orders, lambda o: o.tag == "x"), lambda o: (o.id + 1,))
        ),
    ),
    "groupBy over a union in one piece of generated code": sql(
        "select tag, count(*) from (select tag from orders where amount > 10 "
        "union all select tag from labels where weight > 0) group by tag",
        lambda s: r.aggregate(
            r.select(r.where(s.orders, lambda o: o.amount > 10), lambda o: (o.tag,))
            + r.select(r.where(s.labels, lambda row: row.weight > 0), lambda row: (row.tag,)),
            lambda row: row,
            lambda rows: (len(rows),),
        ),
    ),
    "union, distinct": sql(
        "select tag from orders union select tag from labels",
        lambda s: r.distinct(tags(s) + label_tags(s)),
    ),
    "unionByName": Case(
        lambda t: t.orders.select("id", "tag").unionByName(t.labels, allowMissingColumns=True),
        lambda s: (
            r.select(s.orders, lambda o: (o.id, o.tag, None))
            + r.select(s.labels, lambda label: (None, label.tag, label.weight))
        ),
    ),
    "groupBy over union": Case(
        lambda t: t.orders.select("tag").union(t.labels.select("tag")).groupBy("tag").count(),
        lambda s: r.aggregate(tags(s) + label_tags(s), lambda row: row, lambda rows: (len(rows),)),
    ),
    "intersect": sql(
        "select tag from orders intersect select tag from labels",
        lambda s: r.intersect(tags(s), label_tags(s)),
    ),
    "intersectAll": Case(
        lambda t: t.orders.select("tag").intersectAll(t.labels.select("tag")),
        lambda s: r.intersect_all(tags(s), label_tags(s)),
    ),
    "except": sql(
        "select tag from orders except select tag from labels",
        lambda s: r.except_(tags(s), label_tags(s)),
    ),
    "except of a part of the same table": sql(
        "select tag, customer from orders except select tag, customer from orders where amount > 15",
        lambda s: r.except_(
            r.select(s.orders, lambda o: (o.tag, o.customer)),
            r.select(r.where(s.orders, lambda o: o.amount > 15), lambda o: (o.tag, o.customer)),
        ),
    ),
    "exceptAll": Case(
        lambda t: t.orders.select("tag").exceptAll(t.labels.select("tag")),
        lambda s: r.except_all(tags(s), label_tags(s)),
    ),
    "subtract": Case(
        lambda t: t.orders.select("customer").subtract(t.customers.select("key")),
        lambda s: r.except_(
            r.select(s.orders, lambda o: (o.customer,)), r.select(s.customers, lambda c: (c.key,))
        ),
    ),
}


CASES = {**JOINS, **SETS}

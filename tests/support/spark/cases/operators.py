"""Cases of each operator over one table: queries with their oracles."""

from __future__ import annotations

import itertools
from typing import Any

from pyspark.sql import functions as F

from tests.support.spark import relational as r
from tests.support.spark.dataframe_oracle import Case, sql
from tests.support.spark.shop import TEXT_SCHEMA, Order


def two(row: Order) -> tuple[int, int]:
    return row.id, row.amount


def by_tag(row: Order) -> tuple[Any]:
    return (row.tag,)


def by_amount(row: Order) -> tuple[int, int]:
    return row.amount, row.id


def amounts(rows: list[Any]) -> int | None:
    return r.total(row.amount for row in rows)


def count_and_sum(rows: list[Any]) -> tuple[int, int | None]:
    return len(rows), amounts(rows)


NARROW: dict[str, Case] = {
    "project": Case(
        lambda t: t.orders.select("id", (F.col("amount") * -2).alias("a"), F.upper("tag").alias("t")),
        lambda s: r.select(
            s.orders, lambda o: (o.id, o.amount * -2, o.tag and o.tag.replace("ß", "SS").upper())
        ),
    ),
    "every column as it is": Case(lambda t: t.orders, lambda s: r.select(s.orders, tuple)),
    "no column of the table": Case(
        lambda t: t.orders.select(F.lit(7).alias("seven")), lambda s: r.select(s.orders, lambda o: (7,))
    ),
    "filter": Case(
        lambda t: t.orders.where((F.col("amount") + 0) % 2 == 0).select("id", "amount"),
        lambda s: r.select(r.where(s.orders, lambda o: o.amount % 2 == 0), two),
    ),
    "filter that skips row groups": Case(
        lambda t: t.orders.where("id >= 17 and id < 24").select("id", "amount"),
        lambda s: r.select(r.where(s.orders, lambda o: 17 <= o.id < 24), two),
    ),
    "filter of nulls": Case(
        lambda t: t.orders.where("not (tag = 'x' or customer > 2)").select("id", "amount"),
        lambda s: r.select(
            r.where(
                s.orders,
                lambda o: o.tag not in (None, "x") and o.customer is not None and o.customer <= 2,
            ),
            two,
        ),
    ),
    "filter that passes nothing": sql("select id from orders where amount > 1000", lambda s: []),
    "filter that is always false": sql("select id from orders where 1 = 2", lambda s: []),
    "filters and projections over each other": Case(
        lambda t: (
            t.orders.where("amount > 0")
            .withColumn("twice", F.col("amount") * 2)
            .where("twice > 20")
            .drop("price")
            .where("tag is not null")
            .select("id", "twice")
        ),
        lambda s: r.select(
            r.where(s.orders, lambda o: o.amount * 2 > 20 and o.tag is not None),
            lambda o: (o.id, o.amount * 2),
        ),
    ),
    "orderBy": Case(
        lambda t: t.orders.orderBy(F.desc("amount"), "id").select("id", "amount"),
        lambda s: r.select(s.orders, two),
    ),
    "orderBy into several partitions, of nulls": Case(
        lambda t: t.orders.orderBy(F.asc_nulls_last("tag")).select("id", "amount"),
        lambda s: r.select(s.orders, two),
        conf={"spark.sql.adaptive.coalescePartitions.enabled": "false"},
    ),
    "sortWithinPartitions": Case(
        lambda t: t.orders.sortWithinPartitions("price", "id").select("id", "amount"),
        lambda s: r.select(s.orders, two),
    ),
    "orderBy and limit": Case(
        lambda t: t.orders.orderBy(F.desc("amount"), "id").limit(7).select("id", "amount"),
        lambda s: r.select(sorted(s.orders, key=lambda row: (-row[0].amount, row[0].id))[:7], two),
    ),
    "orderBy, offset and limit": sql(
        "select id, amount from orders order by amount, id limit 6 offset 4",
        lambda s: r.select(sorted(s.orders, key=lambda row: by_amount(row[0]))[4:10], two),
    ),
    "orderBy and offset": sql(
        "select id, amount from orders order by amount desc, id desc offset 20",
        lambda s: r.select(sorted(s.orders, key=lambda row: by_amount(row[0]))[:-20], two),
    ),
    "limit": Case(
        lambda t: t.orders.limit(6).select("id", "amount"), lambda s: r.select(s.orders, two), chosen=6
    ),
    "limit over a filter": Case(
        lambda t: t.orders.where("amount > 3").limit(5).select("id", "amount"),
        lambda s: r.select(r.where(s.orders, lambda o: o.amount > 3), two),
        chosen=5,
    ),
    "limit of nothing": Case(lambda t: t.orders.limit(0).select("id", "amount"), lambda s: []),
    "aggregate over limit": Case(
        lambda t: t.orders.orderBy("amount", "id").limit(9).groupBy("tag").agg(F.count("*"), F.sum("amount")),
        lambda s: r.aggregate(sorted(s.orders, key=lambda row: by_amount(row[0]))[:9], by_tag, count_and_sum),
    ),
    "sample": Case(
        lambda t: t.orders.sample(fraction=0.4, seed=3).select("id", "amount"),
        lambda s: r.select(s.orders, two),
        chosen=-1,
    ),
    "tablesample": sql(
        "select id, amount from orders tablesample (5 rows)", lambda s: r.select(s.orders, two), chosen=5
    ),
    "randomSplit": Case(
        lambda t: t.orders.randomSplit([1.0, 2.0], seed=5)[1].select("id", "amount"),
        lambda s: r.select(s.orders, two),
        chosen=-1,
    ),
    "repartition": Case(
        lambda t: t.orders.repartition(4).where("amount > 5").select("id", "amount"),
        lambda s: r.select(r.where(s.orders, lambda o: o.amount > 5), two),
    ),
    "repartition by a column": Case(
        lambda t: t.orders.repartition(3, "tag").select("id", "amount"), lambda s: r.select(s.orders, two)
    ),
    "repartition by range": Case(
        lambda t: t.orders.repartitionByRange(3, "amount").select("id", "amount"),
        lambda s: r.select(s.orders, two),
    ),
    "repartition, twice": Case(
        lambda t: t.orders.repartition(4).where("amount > 5").repartition(2, "tag").select("id", "amount"),
        lambda s: r.select(r.where(s.orders, lambda o: o.amount > 5), two),
    ),
    "coalesce": Case(
        lambda t: t.orders.coalesce(1).select("id", "amount"), lambda s: r.select(s.orders, two)
    ),
    "coalesce into two": Case(
        lambda t: t.orders.where("amount > 5").coalesce(2).select("id", "amount"),
        lambda s: r.select(r.where(s.orders, lambda o: o.amount > 5), two),
    ),
    "hints and aliases": sql(
        "select /*+ REBALANCE */ x.id, y.amount from (select id from orders) x join orders y on x.id = y.id",
        lambda s: r.select(s.orders, two),
    ),
}


GENERATORS: dict[str, Case] = {
    "explode": Case(
        lambda t: t.baskets.select("id", F.explode("items").alias("item")),
        lambda s: r.explode(s.baskets, lambda b: [(b.id, item) for item in b.items or []]),
    ),
    "explode of what a Python UDF gives": Case(
        lambda t: t.baskets.select(
            "id", F.explode(F.udf(lambda items: (items or []) * 2, "array<string>")("items")).alias("item")
        ),
        lambda s: r.explode(s.baskets, lambda b: [(b.id, item) for item in (b.items or []) * 2]),
    ),
    "explode of what is dropped": Case(
        lambda t: (
            t.orders.select("id")
            .withColumn("ks", F.array(F.lit(1), F.lit(2)))
            .withColumn("k", F.explode("ks"))
            .drop("ks")
        ),
        lambda s: r.explode(s.orders, lambda o: [(o.id, 1), (o.id, 2)]),
    ),
    "explode of a map": Case(
        lambda t: t.baskets.select("id", F.explode("prices")),
        lambda s: r.explode(s.baskets, lambda b: [(b.id, *pair) for pair in (b.prices or {}).items()]),
    ),
    "posexplode_outer": Case(
        lambda t: t.baskets.select("id", F.posexplode_outer("items")),
        lambda s: r.explode(
            s.baskets, lambda b: [(b.id, *pair) for pair in enumerate(b.items or [])] or [(b.id, None, None)]
        ),
    ),
    "lateral view": sql(
        "select id, item from baskets lateral view explode(items) as item where item <> 'b'",
        lambda s: r.explode(
            s.baskets, lambda b: [(b.id, item) for item in b.items or [] if item not in (None, "b")]
        ),
    ),
    "two lateral views": sql(
        "select id, item, k from baskets lateral view outer explode(items) as item "
        "lateral view explode(map_keys(prices)) as k",
        lambda s: r.explode(
            s.baskets,
            lambda b: [(b.id, *pair) for pair in itertools.product(b.items or [None], b.prices or {})],
        ),
    ),
    "stack": sql(
        "select id, stack(2, 'a', amount, 'b', -amount) as (k, v) from orders where id < 9",
        lambda s: r.explode(
            r.where(s.orders, lambda o: o.id < 9), lambda o: [(o.id, "a", o.amount), (o.id, "b", -o.amount)]
        ),
    ),
    "unpivot": Case(
        lambda t: t.orders.select("id", "amount", F.col("customer").cast("bigint")).unpivot(
            "id", ["amount", "customer"], "k", "v"
        ),
        lambda s: r.explode(s.orders, lambda o: [(o.id, "amount", o.amount), (o.id, "customer", o.customer)]),
    ),
    "inline": sql(
        "select id, n, c from orders lateral view inline(array(struct(1L as n, 'p' "
        "as c), struct(amount as n, 'q' as c))) as n, c",
        lambda s: r.explode(s.orders, lambda o: [(o.id, 1, "p"), (o.id, o.amount, "q")]),
    ),
    "words of text, counted": Case(
        lambda t: (
            t.spark.read.text(t.shop.path("lines"))
            .select(F.explode(F.split("value", " ")).alias("word"))
            .groupBy("word")
            .count()
        ),
        lambda s: r.aggregate(
            r.explode(s.lines, lambda line: [(word,) for word in line.split(" ")]),
            lambda row: row,
            lambda rows: (len(rows),),
        ),
    ),
    "distinct over explode over groupBy": sql(
        "select distinct c from (select tag, explode(collect_list(customer)) c from orders group by tag)",
        lambda s: r.distinct(
            r.explode(
                r.aggregate(s.orders, by_tag, lambda rows: (rows,)),
                lambda row: [(order.customer,) for order in row[1] if order.customer is not None],
            )
        ),
    ),
}


BY_CHANCE: dict[str, Case] = {
    "a filter by chance and by a column": Case(
        lambda t: t.orders.where("rand(3) < 0.7 and amount > 5").select("id", "amount"),
        lambda s: r.select(r.where(s.orders, lambda o: o.amount > 5), two),
        chosen=-1,
    ),
    **{
        f"a filter by chance and by a column of {format}": Case(
            lambda t, format=format: (
                t.spark.read.schema(TEXT_SCHEMA)
                .format(format)
                .load(t.shop.path(format))
                .where("rand(3) < 0.7 and amount > 0 and customer is not null")
                .select("id", "amount")
            ),
            lambda s, format=format: r.select(
                r.where(s.tables[format], lambda o: o.amount > 0 and o.customer is not None), two
            ),
            chosen=-1,
        )
        for format in ("csv", "json")
    },
    "a filter that fails for rows that another one leaves out": Case(
        lambda t: (
            t.spark.read.schema(TEXT_SCHEMA)
            .csv(t.shop.path("csv"))
            .where("customer is not null and if(customer is null, raise_error('null'), amount) > 0")
            .select("id", "amount")
        ),
        lambda s: r.select(r.where(s.csv, lambda o: o.amount > 0 and o.customer is not None), two),
    ),
}


CASES = {**NARROW, **GENERATORS, **BY_CHANCE}

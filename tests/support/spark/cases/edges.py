"""Cases where following records goes wrong first: queries with their oracles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.support.spark import relational as r
from tests.support.spark.dataframe_oracle import Case, Tables, expect_uncovered, sql
from tests.support.spark.shop import Basket, Customer, Label, Order, Shop

MERGE = {"spark.sql.autoBroadcastJoinThreshold": "-1"}


def two(row: Order) -> tuple[int, int]:
    return row.id, row.amount


def id_of(row: Order) -> tuple[int]:
    return (row.id,)


def count(rows: list[Any]) -> tuple[int]:
    return (len(rows),)


def sorted_by_amount(data: r.Data) -> r.Data:
    return sorted(data, key=lambda row: (row[0].amount, row[0].id))


def grouped_by(expression: str, key: Any) -> Case:
    """Groups by a key that is not shown."""
    return sql(
        f"select count(*), sum(amount) from orders group by {expression}",
        lambda s: r.select(
            r.aggregate(
                s.orders, lambda o: (key(o),), lambda rows: (len(rows), sum(row.amount for row in rows))
            ),
            lambda row: row[1:],
        ),
    )


def of_like_places(order: Order, label: Label) -> bool:
    if order.amount % 2:
        return bool(label.weight % 2) and order.customer == 3
    return label.weight % 2 == 0 and order.customer == -1


KEYS: dict[str, Case] = {
    "key of an array of doubles": grouped_by("array(price, 1.0D)", lambda o: o.price),
    "key of a struct of a double": grouped_by("struct(price, tag)", lambda o: (o.price, o.tag)),
    "key of an array, nulls in other places": grouped_by(
        "if(amount % 2 = 0, array(customer, null), array(null, customer))",
        lambda o: (o.customer, o.customer is not None and o.amount % 2),
    ),
    "key of an array, of other lengths": grouped_by(
        "if(amount % 2 = 0, array(customer), array(customer, null))", lambda o: (o.customer, o.amount % 2)
    ),
    "key of a struct, nulls in other places": grouped_by(
        "if(amount % 2 = 0, named_struct('a', customer, 'b', null), named_struct('a', null, 'b', customer))",
        lambda o: (o.customer, o.customer is not None and o.amount % 2),
    ),
    "key of a struct of nothing, or none": grouped_by(
        "if(amount % 2 = 0, struct(cast(null as int)), null)", lambda o: o.amount % 2
    ),
    "key of arrays in an array": grouped_by(
        "if(amount % 2 = 0, array(array(id % 2), array(1)), array(array(id % 2, 1)))",
        lambda o: (o.id % 2, o.amount % 2),
    ),
    "keys of two arrays": grouped_by(
        "if(amount % 2 = 0, array(1), array(1, 2)), if(amount % 2 = 0, array(2, 3), array(3))",
        lambda o: o.amount % 2,
    ),
    "semi join on arrays with nulls": sql(
        "select id from orders left semi join labels on "
        "if(amount % 2 = 0, array(customer, null), array(null, customer)) "
        "= if(weight % 2 = 0, array(-1, null), array(null, 3))",
        lambda s: r.select(r.semi(s.orders, s.labels, of_like_places), id_of),
    ),
    "key of a float": grouped_by("float(price)", lambda o: o.price),
    "key of a decimal": grouped_by("decimal(amount) / 2", lambda o: o.amount),
    "key of a date": grouped_by(
        "date_add(date'2020-01-01', int(amount % 4))", lambda o: o.amount - int(o.amount / 4) * 4
    ),
    "key of bytes": grouped_by("binary(tag)", lambda o: o.tag),
    "key of a boolean": grouped_by("amount > 12", lambda o: o.amount > 12),
    "key of nothing": sql(
        "select count(*) from orders group by grouping sets (())", lambda s: r.aggregate_all(s.orders, count)
    ),
    "key that is one value": sql(
        "select 'k', count(*) from orders group by 1",
        lambda s: r.aggregate(s.orders, lambda o: ("k",), count),
    ),
    "distinct of everything": sql(
        "select distinct * from (select tag, price from orders union all select tag, price from orders)",
        lambda s: r.distinct(r.select(s.orders, lambda o: (o.tag, o.price))),
    ),
    "join on a struct": sql(
        "select a.id, b.id as other from orders a join orders b "
        "on struct(a.price, a.tag) = struct(b.price, b.tag) where a.id < b.id",
        lambda s: r.select(
            r.join(
                s.orders, s.orders, lambda a, b: r.same((a.price, a.tag), (b.price, b.tag)) and a.id < b.id
            ),
            lambda p: (p[0].id, p[1].id),
        ),
    ),
    "semi join on NaN and both zeros": sql(
        "select id from orders o where exists (select 1 from orders p "
        "where p.price = o.price and p.amount > 20)",
        lambda s: r.select(
            r.semi(s.orders, s.orders, lambda o, p: r.equal(o.price, p.price) and p.amount > 20), id_of
        ),
    ),
    "semi join of other types": sql(
        "select id from orders where amount in (select key from customers)",
        lambda s: r.select(r.semi(s.orders, s.customers, lambda o, c: r.equal(o.amount, c.key)), id_of),
    ),
    "dropDuplicates that keeps a row": Case(
        lambda t: t.orders.dropDuplicates(["tag"]).select("id", "tag"),
        lambda s: [
            ((row.id, row.tag), r.all_of(rows))
            for _, rows in r.groups(s.orders, lambda o: o.tag)
            for row, _ in rows
        ],
        chosen=4,
    ),
}


def rich(order: Order, customer: Customer) -> bool:
    return r.equal(order.customer, customer.key) and order.amount > len(customer.name) * 5


def dearer(one: Order, other: Order) -> bool:
    """Another price of the same tag, further down. NaN is one value, and so are both zeros."""
    return (
        r.equal(one.tag, other.tag)
        and one.price is not None
        and other.price is not None
        and not r.equal(one.price, other.price)
        and other.id > one.id
    )


def cheap(basket: Basket, customer: Customer) -> bool:
    price = (basket.prices or {}).get("c")
    return r.equal(basket.id, customer.key) and price is not None and price <= len(customer.name)


def sums_of_prices(shop: Shop) -> r.Data:
    """(tag, sum) of the prices that are positive numbers."""
    return r.aggregate(
        r.where(shop.orders, lambda o: o.price is not None and o.price > 0),
        lambda o: (o.tag,),
        lambda rows: (sum(row.price for row in rows),),
    )


DEARER = sql(
    "select a.id from orders a where exists (select 1 from orders b "
    "where b.tag = a.tag and b.price <> a.price and b.id > a.id)",
    lambda s: r.select(r.semi(s.orders, s.orders, dearer), id_of),
)


MEETINGS: dict[str, Case] = {
    "semi join with a condition on both": sql(
        "select id from orders left semi join customers on customer = key and amount > length(name) * 5",
        lambda s: r.select(r.semi(s.orders, s.customers, rich), id_of),
    ),
    "semi join with a condition on both, sort-merge": sql(
        "select id from orders left semi join customers on customer = key and amount > length(name) * 5",
        lambda s: r.select(r.semi(s.orders, s.customers, rich), id_of),
        conf=MERGE,
    ),
    "EXISTS with a condition on both, or-ed": sql(
        "select id from orders where amount < 0 "
        "or exists (select 1 from customers where customer = key and amount > length(name) * 5)",
        lambda s: r.select(
            r.where(
                r.matched(s.orders, s.customers, rich),
                lambda o: o.amount < 0 or any(rich(o, c) for c, _ in s.customers),
            ),
            id_of,
        ),
    ),
    "semi join of a table with itself, with a condition": DEARER,
    "semi join of a table with itself, with a condition, sort-merge": replace(DEARER, conf=MERGE),
    "semi join of several rows of one row": sql(
        "select id, item from (select id, explode(items) as item from baskets) "
        "left semi join customers on id = key and length(item) < length(name)",
        lambda s: r.semi(
            r.select(r.explode(s.baskets, lambda b: [(b.id, item) for item in b.items or []]), tuple),
            s.customers,
            lambda b, c: r.equal(b[0], c.key) and b[1] is not None and len(b[1]) < len(c.name),
        ),
    ),
    "semi join of groups with groups": sql(
        "select tag, n from (select tag, sum(amount) as n from orders group by tag) o left semi join "
        "(select tag as t, max(weight) as m from labels group by tag) l on tag = t and n > m",
        lambda s: r.semi(
            r.aggregate(s.orders, lambda o: (o.tag,), lambda rows: (sum(row.amount for row in rows),)),
            r.aggregate(s.labels, lambda w: (w.tag,), lambda rows: (max(row.weight for row in rows),)),
            lambda o, w: r.equal(o[0], w[0]) and o[1] > w[1],
        ),
    ),
    "semi join of what is cached, with a condition": Case(
        lambda t: (
            t.orders.where("amount > 0")
            .cache()
            .join(t.customers, F.expr("customer = key and amount > length(name) * 5"), "left_semi")
            .select("id")
        ),
        lambda s: r.select(r.semi(r.where(s.orders, lambda o: o.amount > 0), s.customers, rich), id_of),
    ),
    "semi join of sums of doubles, with a condition": sql(
        "select tag from (select tag, sum(price) as n from orders where price > 0 and not isnan(price) "
        "group by tag) o left semi join labels l on o.tag = l.tag and n > weight",
        lambda s: r.select(
            r.semi(
                sums_of_prices(s),
                s.labels,
                lambda o, w: r.equal(o[0], w.tag) and o[1] > w.weight,
            ),
            lambda o: (o[0],),
        ),
        bound=lambda s: r.select(
            r.semi(
                sums_of_prices(s),
                s.labels,
                lambda o, w: r.equal(o[0], w.tag),
            ),
            lambda o: (o[0],),
        ),
        exact=False,
    ),
    "semi join with a condition on a map": sql(
        "select id from baskets left semi join customers on id = key and prices['c'] <= length(name)",
        lambda s: r.select(r.semi(s.baskets, s.customers, cheap), id_of),
        bound=lambda s: r.select(
            [
                (basket, sources | r.all_of((c, of_it) for c, of_it in s.customers if c.key == basket.id))
                for basket, sources in r.semi(s.baskets, s.customers, cheap)
            ],
            id_of,
        ),
        exact=False,
    ),
    "anti join with a condition on both": sql(
        "select id from orders left anti join customers on customer = key and amount > length(name) * 5",
        lambda s: r.select(r.anti(s.orders, s.customers, rich), id_of),
    ),
    "intersectAll over exceptAll": Case(
        lambda t: (
            t.orders.select("tag").exceptAll(t.labels.select("tag")).intersectAll(t.by_tag.select("tag"))
        ),
        lambda s: r.intersect_all(
            r.except_all(r.select(s.orders, lambda o: (o.tag,)), r.select(s.labels, lambda w: (w.tag,))),
            r.select(s.by_tag, lambda o: (o.tag,)),
        ),
        exact=None,
    ),
    "exceptAll over intersectAll": Case(
        lambda t: (
            t.orders.select("tag").intersectAll(t.by_tag.select("tag")).exceptAll(t.labels.select("tag"))
        ),
        lambda s: r.except_all(
            r.intersect_all(r.select(s.orders, lambda o: (o.tag,)), r.select(s.by_tag, lambda o: (o.tag,))),
            r.select(s.labels, lambda w: (w.tag,)),
        ),
        exact=None,
    ),
    "exceptAll of the first of a table": sql(
        "select tag from orders except all (select tag from labels order by weight limit 4)",
        lambda s: r.except_all(
            r.select(s.orders, lambda o: (o.tag,)),
            r.select(r.where(s.labels, lambda w: w.weight < 4), lambda w: (w.tag,)),
        ),
    ),
    "exceptAll of unions": Case(
        lambda t: t.orders.select("tag").union(t.labels.select("tag")).exceptAll(t.labels.select("tag")),
        lambda s: r.except_all(
            r.select(s.orders, lambda o: (o.tag,)) + r.select(s.labels, lambda w: (w.tag,)),
            r.select(s.labels, lambda w: (w.tag,)),
        ),
    ),
    "except over intersect": sql(
        "(select tag from orders intersect select tag from labels) except select tag "
        "from labels where weight = -2",
        lambda s: r.except_(
            r.intersect(r.select(s.orders, lambda o: (o.tag,)), r.select(s.labels, lambda w: (w.tag,))),
            r.select(r.where(s.labels, lambda w: w.weight == -2), lambda w: (w.tag,)),
        ),
    ),
    "join with VALUES": sql(
        "select id, n from orders join values ('x', 1), ('y', 2) as v(t, n) on tag = t",
        lambda s: r.select(
            r.where(s.orders, lambda o: o.tag in ("x", "y")), lambda o: (o.id, 1 if o.tag == "x" else 2)
        ),
    ),
    "join with a range": Case(
        lambda t: t.orders.join(t.spark.range(3, 9).withColumnRenamed("id", "n"), F.expr("n = id")).select(
            "id", "n"
        ),
        lambda s: r.select(r.where(s.orders, lambda o: 3 <= o.id < 9), lambda o: (o.id, o.id)),
    ),
    "join with a folder for each key": sql(
        "select id, weight from by_tag o join labels l on o.tag = l.tag where weight > 2",
        lambda s: r.select(
            r.join(s.by_tag, s.labels, lambda o, w: r.equal(o.tag, w.tag) and w.weight > 2),
            lambda p: (p[0].id, p[1].weight),
        ),
    ),
    "three unions deep": sql(
        "select id from (select id from orders union all select weight from labels) where id > 2 "
        "union all (select key from customers union all select id from orders where id < 3)",
        lambda s: (
            r.select(r.where(s.orders, lambda o: o.id > 2), id_of)
            + r.select(r.where(s.labels, lambda w: w.weight > 2), lambda w: (w.weight,))
            + r.select(s.customers, lambda c: (c.key,))
            + r.select(r.where(s.orders, lambda o: o.id < 3), id_of)
        ),
    ),
}


LIMITS: dict[str, Case] = {
    "limit under a join": sql(
        "select id, name from (select * from orders order by amount, id limit 9) "
        "join customers on customer = key",
        lambda s: r.select(
            r.join(sorted_by_amount(s.orders)[:9], s.customers, lambda o, c: r.equal(o.customer, c.key)),
            lambda p: (p[0].id, p[1].name),
        ),
    ),
    "limit over a union": sql(
        "select id from (select id from orders where id < 9 union all select id + 100 from orders) limit 14",
        lambda s: (
            r.select(r.where(s.orders, lambda o: o.id < 9), id_of)
            + r.select(s.orders, lambda o: (o.id + 100,))
        ),
        chosen=14,
    ),
    "limit under a groupBy, chosen by Spark": sql(
        "select max(id) from (select id from orders limit 1)",
        lambda s: r.select(s.orders, id_of),
        chosen=1,
    ),
    "limit over a join": sql(
        "select id, name from orders join customers on customer = key order by id, name limit 5",
        lambda s: r.select(
            sorted(
                r.join(s.orders, s.customers, lambda o, c: r.equal(o.customer, c.key)),
                key=lambda row: (row[0][0].id, row[0][1].name),
            )[:5],
            lambda p: (p[0].id, p[1].name),
        ),
    ),
    "sort over limit over sort": sql(
        "select id, amount from (select * from orders order by amount, id limit 8) order by id",
        lambda s: r.select(sorted_by_amount(s.orders)[:8], two),
    ),
    "limit of a limit": Case(
        lambda t: t.orders.limit(9).where("id >= 0").limit(4).select("id", "amount"),
        lambda s: r.select(s.orders, two),
        chosen=4,
    ),
    "scalar subquery of a limit": sql(
        "select id, amount from orders where amount > (select amount from orders "
        "where tag = 'y' order by amount, id limit 1)",
        lambda s: [
            (two(row), place | least)
            for (first, least) in sorted_by_amount(r.where(s.orders, lambda o: o.tag == "y"))[:1]
            for row, place in s.orders
            if row.amount > first.amount
        ],
    ),
}


def ends(t: Tables, name: str) -> DataFrame:
    return t.spark.read.text(t.shop.path(name)).selectExpr("value")


NAMES: dict[str, Case] = {
    "files with odd names": Case(
        lambda t: t.spark.read.parquet(t.shop.path("odd names")), lambda s: r.select(s.odd, tuple)
    ),
    "folders of values": Case(
        lambda t: t.by_tag.where("tag <> 'x' and amount > 3").select("id", "tag"),
        lambda s: r.select(
            r.where(s.by_tag, lambda o: o.tag not in (None, "x") and o.amount > 3), lambda o: (o.id, o.tag)
        ),
    ),
    "folders of values, grouped": Case(
        lambda t: t.by_tag.groupBy("tag").count(),
        lambda s: r.aggregate(s.by_tag, lambda o: (o.tag,), count),
    ),
    "output with an odd name": Case(
        lambda t: t.labels,
        lambda s: r.select(s.labels, tuple),
        write=lambda frame, path: frame.write.parquet(path.rpartition("/")[0] + "/odd %20 ü#+ out"),
        place="odd %20 ü#+ out",
    ),
    "output partitioned by odd values": Case(
        lambda t: t.labels.selectExpr("weight", "concat('a/b %', tag, ' = ü') as odd"),
        lambda s: r.select(s.labels, lambda w: (w.weight,)),
        write=lambda frame, path: frame.write.partitionBy("odd").parquet(path),
    ),
    "columns named as ours": Case(
        lambda t: t.orders.selectExpr("id as lineage_1", "amount as lineage_2").where("lineage_2 > 3"),
        lambda s: r.select(r.where(s.orders, lambda o: o.amount > 3), two),
    ),
    "lines that end in several ways": Case(
        lambda t: ends(t, "ends"), lambda s: r.select(s.ends, lambda row: (row,))
    ),
    "lines that end in several ways, in splits": Case(
        lambda t: ends(t, "ends"),
        lambda s: r.select(s.ends, lambda row: (row,)),
        conf={"spark.sql.files.maxPartitionBytes": "5", "spark.sql.files.openCostInBytes": "1"},
    ),
    "compressed lines": Case(lambda t: ends(t, "packed"), lambda s: r.select(s.packed, lambda row: (row,))),
}


#: What is not covered: the job runs as it would without lineage, and the graph says so.
UNCOVERED: dict[str, Case] = {
    "recursion": expect_uncovered(
        sql(
            "with recursive t(n) as (select 1 union all select n + 1 from t where n < 5) "
            "select id from orders join t on id = n",
            lambda s: r.select(r.where(s.orders, lambda o: 1 <= o.id <= 5), id_of),
        ),
        "UnionLoop",
    ),
    "key of a map": expect_uncovered(
        sql(
            "select count(*) from baskets group by prices",
            lambda s: r.select(r.aggregate(s.baskets, lambda b: (b.id,), count), lambda row: row[1:]),
        ),
        "Aggregate",
    ),
}


CASES = {**KEYS, **MEETINGS, **LIMITS, **NAMES, **UNCOVERED}

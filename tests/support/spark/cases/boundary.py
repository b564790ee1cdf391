"""RDD-DataFrame boundary cases: queries with their oracles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from tests.support.spark import relational as r
from tests.support.spark.dataframe_oracle import (
    Case,
    Tables,
)
from tests.support.spark.shop import Order, Shop


def as_text(rdd: Any, path: str) -> None:
    rdd.map(lambda row: " ".join(map(str, row))).saveAsTextFile(path)


def as_rdd(query: Any, oracle: Callable[[Shop], r.Data], **more: Any) -> Case:
    """A query that gives an RDD of tuples, which is saved as text."""
    return Case(
        query, lambda s: r.select(oracle(s), lambda row: (" ".join(map(str, row)),)), write=as_text, **more
    )


def kept(s: Shop) -> r.Data:
    return r.where(s.orders, lambda o: o.amount > 4)


def two(row: Order) -> tuple[int, int]:
    return row.id, row.amount


def pair(row: Any) -> tuple[Any, Any]:
    return row.id, row.amount


def by_tag(row: Any) -> tuple[Any]:
    return (row.tag,)


def count(rows: list[Any]) -> tuple[int]:
    return (len(rows),)


def sold(t: Tables) -> DataFrame:
    return t.orders.where("amount > 4").select("id", "amount")


def lines(t: Tables) -> Any:
    return t.spark.sparkContext.textFile(t.shop.path("lines"), 4)


def words_of(s: Shop) -> r.Data:
    return r.explode(s.lines, lambda text: [(word, len(word)) for word in text.split()])


def words(t: Tables) -> Any:
    return lines(t).flatMap(str.split).map(lambda word: (word, len(word)))


def counted_words(s: Shop) -> r.Data:
    return r.aggregate(words_of(s), lambda row: (row[0],), count)


def used_twice(t: Tables) -> Any:
    rows = sold(t).rdd
    return rows.map(pair).union(rows.filter(lambda row: row.id > 9).map(pair))


def cached_rows(t: Tables) -> Any:
    rows = sold(t).rdd.cache()
    rows.count()
    return rows.map(pair)


def taken_first(t: Tables) -> Any:
    rows = sold(t).rdd
    rows.take(2)
    return rows.map(pair)


def collected_before(t: Tables) -> Any:
    frame = sold(t)
    frame.collect()
    return frame.rdd.map(pair)


def of_a_cached_frame(t: Tables) -> Any:
    frame = t.orders.groupBy("tag").count().cache()
    frame.count()
    return frame.rdd.map(tuple)


def coalesced_cache(t: Tables) -> Any:
    return sold(t).cache().coalesce(1).rdd.map(pair)


def of_two_frames(t: Tables) -> Any:
    labels = t.labels.rdd.map(lambda row: (row.tag, row.weight))
    return sold(t).rdd.map(pair).union(labels)


def paired(t: Tables) -> Any:
    frame = sold(t)
    return frame.rdd.zip(frame.rdd.map(lambda row: row.id)).map(lambda rows: (rows[0].id, rows[1]))


def multiplied(t: Tables) -> Any:
    rows = t.labels.where("weight > 0").rdd
    return rows.cartesian(rows).map(lambda rows: (*rows[0], *rows[1]))


def by_key(t: Tables) -> Any:
    return t.orders.rdd.map(lambda row: (row.tag, 1)).reduceByKey(lambda one, other: one + other)


def joined_rows(t: Tables) -> Any:
    orders = t.orders.rdd.map(lambda row: (row.customer, row.id))
    return orders.join(t.customers.rdd.map(tuple)).map(lambda row: row[1])


def sold_pairs(s: Shop) -> r.Data:
    return r.select(kept(s), two)


TO_RDD: dict[str, Case] = {
    "rows": as_rdd(lambda t: sold(t).rdd.map(pair), sold_pairs),
    "rows as they are": as_rdd(lambda t: sold(t).rdd, sold_pairs),
    "rows that are filtered": as_rdd(
        lambda t: t.orders.rdd.filter(lambda row: row.amount > 4).map(pair), sold_pairs
    ),
    "few rows, empty partitions": as_rdd(
        lambda t: t.orders.where("id < 2").rdd.map(pair),
        lambda s: r.select(r.where(s.orders, lambda o: o.id < 2), two),
    ),
    "no rows": as_rdd(lambda t: t.orders.where("id < 0").rdd.map(pair), lambda s: []),
    "several rows of one": as_rdd(
        lambda t: t.baskets.select("id", F.explode("items").alias("item")).rdd.flatMap(
            lambda row: [row, row]
        ),
        lambda s: [
            item
            for item in r.explode(s.baskets, lambda b: [(b.id, element) for element in b.items or ()])
            for _ in range(2)
        ],
    ),
    "groups": as_rdd(
        lambda t: t.orders.groupBy("tag").count().rdd.map(tuple),
        lambda s: r.aggregate(s.orders, by_tag, count),
    ),
    "a join": as_rdd(
        lambda t: t.orders.join(t.labels, "tag").rdd.map(lambda row: (row.id, row.weight)),
        lambda s: r.select(
            r.join(s.orders, s.labels, lambda o, label: r.equal(o.tag, label.tag)),
            lambda p: (p[0].id, p[1].weight),
        ),
    ),
    "a sort": as_rdd(lambda t: sold(t).orderBy("amount", "id").rdd.map(pair), sold_pairs),
    "a limit over a sort": as_rdd(
        lambda t: t.orders.orderBy("id").limit(5).rdd.map(pair),
        lambda s: r.select(r.where(s.orders, lambda o: o.id < 5), two),
    ),
    "a limit": as_rdd(lambda t: t.orders.limit(9).rdd.map(pair), lambda s: r.select(s.orders, two), chosen=9),
    "a window": as_rdd(
        lambda t: t.spark.sql("select id, count(*) over (partition by tag) as n from orders").rdd.map(tuple),
        lambda s: r.window(s.orders, by_tag, lambda o, rows: (o.id, len(rows))),
        exact=None,
    ),
    "the RDD read twice": as_rdd(
        used_twice, lambda s: sold_pairs(s) + r.where(sold_pairs(s), lambda row: row[0] > 9)
    ),
    "the RDD kept": as_rdd(cached_rows, sold_pairs),
    "the RDD, of which a few were taken before": as_rdd(taken_first, sold_pairs),
    "the DataFrame collected before": as_rdd(collected_before, sold_pairs),
    "the DataFrame cached": as_rdd(of_a_cached_frame, lambda s: r.aggregate(s.orders, by_tag, count)),
    "a cache that is filled by one task": as_rdd(coalesced_cache, sold_pairs),
    "coalesce of the RDD": as_rdd(lambda t: sold(t).rdd.coalesce(1).map(pair), sold_pairs),
    "repartition of the RDD": as_rdd(lambda t: sold(t).rdd.repartition(2).map(pair), sold_pairs),
    "sortBy of the RDD": as_rdd(lambda t: sold(t).rdd.map(pair).sortBy(lambda row: row[1]), sold_pairs),
    "a union of two": as_rdd(
        of_two_frames, lambda s: sold_pairs(s) + r.select(s.labels, lambda label: tuple(label))
    ),
    "a union of two in one partition": as_rdd(
        lambda t: of_two_frames(t).coalesce(1),
        lambda s: sold_pairs(s) + r.select(s.labels, lambda label: tuple(label)),
    ),
    "zip with itself": as_rdd(paired, lambda s: r.select(kept(s), lambda o: (o.id, o.id))),
    "cartesian with itself": as_rdd(
        multiplied,
        lambda s: [
            ((*one, *other), sources | more)
            for one, sources in r.where(s.labels, lambda label: label.weight > 0)
            for other, more in r.where(s.labels, lambda label: label.weight > 0)
        ],
    ),
    "reduceByKey": as_rdd(by_key, lambda s: r.aggregate(s.orders, by_tag, count)),
    "join of RDDs": as_rdd(
        joined_rows,
        lambda s: r.select(
            # Python's None equals itself, unlike SQL's.
            r.join(s.orders, s.customers, lambda o, c: o.customer == c.key),
            lambda p: (p[0].id, p[1].name),
        ),
    ),
}


def cached_pairs(t: Tables) -> DataFrame:
    kept = words(t).cache()
    kept.count()
    return kept.toDF("word string, n int").where("n > 2")


def with_itself(t: Tables) -> DataFrame:
    frame = words(t).toDF("word string, n int")
    return frame.alias("a").join(frame.alias("b"), F.expr("a.word = b.word")).selectExpr("a.word", "b.n")


def self_joined(s: Shop) -> r.Data:
    joined = r.join(words_of(s), words_of(s), lambda one, other: one[0] == other[0])
    return r.select(joined, lambda p: (p[0][0], p[1][1]))


def cached_frame(t: Tables) -> DataFrame:
    frame = words(t).toDF("word string, n int").cache()
    return frame.where("n > 2").union(frame.where("n < 4"))


TO_FRAME: dict[str, Case] = {
    "toDF": Case(
        lambda t: words(t).toDF("word string, n int").where("n < 4"),
        lambda s: r.where(words_of(s), lambda row: row[1] < 4),
    ),
    "toDF with names": Case(lambda t: words(t).toDF(["word", "n"]), words_of),
    "createDataFrame, schema by a sample": Case(
        lambda t: t.spark.createDataFrame(words(t), ["word", "n"], samplingRatio=0.9), words_of
    ),
    "createDataFrame of Rows": Case(
        lambda t: t.spark.createDataFrame(words(t).map(lambda pair: Row(word=pair[0], n=pair[1]))), words_of
    ),
    "createDataFrame of single values": Case(
        lambda t: t.spark.createDataFrame(words(t).map(lambda pair: pair[1]), "int"),
        lambda s: r.select(words_of(s), lambda row: (row[1],)),
    ),
    "of a shuffle": Case(
        lambda t: words(t).map(lambda pair: (pair[0], 1)).reduceByKey(int.__add__).toDF("word string, n int"),
        counted_words,
    ),
    "of a sort": Case(
        lambda t: words(t).sortBy(lambda pair: pair[0], False).toDF("w string, n int"), words_of
    ),
    "of a join": Case(
        lambda t: (
            words(t)
            .join(words(t).mapValues(lambda n: -n))
            .map(lambda p: (p[0], p[1][1]))
            .toDF("w string, n int")
        ),
        lambda s: r.select(self_joined(s), lambda row: (row[0], -row[1])),
    ),
    "of a union": Case(
        lambda t: words(t).union(words(t)).toDF("w string, n int").coalesce(1),
        lambda s: words_of(s) + words_of(s),
    ),
    "of a kept RDD": Case(cached_pairs, lambda s: r.where(words_of(s), lambda row: row[1] > 2)),
    "groups": Case(
        lambda t: words(t).toDF("word string, n int").groupBy("word").count(),
        counted_words,
    ),
    "joined with a table": Case(
        lambda t: (
            words(t)
            .toDF("word string, n int")
            .join(t.orders, F.expr("n = id"))
            .select("word", "id", "amount")
        ),
        lambda s: r.select(
            r.join(words_of(s), s.orders, lambda word, o: word[1] == o.id),
            lambda p: (p[0][0], p[1].id, p[1].amount),
        ),
    ),
    "joined with itself": Case(with_itself, self_joined),
    "cached": Case(
        cached_frame,
        lambda s: r.where(words_of(s), lambda row: row[1] > 2) + r.where(words_of(s), lambda row: row[1] < 4),
    ),
    "a list": Case(
        lambda t: (
            t.spark.createDataFrame([(1, "a"), (2, "b")], "n int, s string")
            .join(t.orders, F.expr("n = id"))
            .select("s", "amount")
        ),
        lambda s: r.select(r.where(s.orders, lambda o: o.id in (1, 2)), lambda o: ("ab"[o.id - 1], o.amount)),
    ),
}


def there_and_back(t: Tables) -> Any:
    words(t).toDF("word string, n int").createOrReplaceTempView("words")
    counted = t.spark.sql("select n, count(*) as times from words group by n")
    by_length = counted.rdd.map(lambda row: (row.n, row.times)).filter(lambda pair: pair[0] < 6)
    named = by_length.toDF("n int, times long").join(t.orders, F.expr("n = id")).select("times", "amount")
    return named.rdd.map(tuple)


def there_and_back_of(s: Shop) -> r.Data:
    counted = r.aggregate(words_of(s), lambda row: (row[1],), count)
    joined = r.join(r.where(counted, lambda row: row[0] < 6), s.orders, lambda counts, o: counts[0] == o.id)
    return r.select(joined, lambda p: (p[0][1], p[1].amount))


def checkpointed_both(t: Tables) -> DataFrame:
    """Both have the same columns, to Spark."""
    orders = t.orders.select("id", "amount")
    every, few = orders.checkpoint(), orders.where("amount > 20").checkpoint()
    return every.where("id < 9").union(few)


def collected_and_checkpointed(t: Tables) -> DataFrame:
    frame = sold(t)
    frame.collect()
    return frame.localCheckpoint().where("id > 3")


BETWEEN: dict[str, Case] = {
    "to a DataFrame, to an RDD, to a DataFrame, to an RDD": as_rdd(there_and_back, there_and_back_of),
    "an RDD and back": Case(
        lambda t: t.orders.where("amount > 4").rdd.map(pair).toDF("id int, amount long").where("id > 3"),
        lambda s: r.where(sold_pairs(s), lambda row: row[0] > 3),
    ),
    "groups, an RDD, groups": Case(
        lambda t: (
            t.orders.groupBy("tag", "customer")
            .count()
            .rdd.map(lambda row: (row.tag, 1))
            .toDF("tag string, n int")
            .groupBy("tag")
            .count()
        ),
        lambda s: r.aggregate(
            r.aggregate(s.orders, lambda o: (o.tag, o.customer), count), lambda row: (row[0],), count
        ),
    ),
    "localCheckpoint": Case(
        lambda t: t.orders.groupBy("customer").count().localCheckpoint().where("count > 1"),
        lambda s: r.where(r.aggregate(s.orders, lambda o: (o.customer,), count), lambda row: row[1] > 1),
    ),
    "cache of a list": as_rdd(
        lambda t: (
            t.spark.createDataFrame([(1, "a")], "n int, s string")
            .cache()
            .join(t.orders, F.expr("n = id"))
            .select("s", "amount")
            .rdd.map(tuple)
        ),
        lambda s: r.select(r.where(s.orders, lambda o: o.id == 1), lambda o: ("a", o.amount)),
    ),
    "localCheckpoint, computed later": Case(
        lambda t: sold(t).localCheckpoint(eager=False).where("id > 3"),
        lambda s: r.where(sold_pairs(s), lambda row: row[0] > 3),
    ),
    "checkpoint, computed later": Case(
        lambda t: sold(t).checkpoint(eager=False).where("id > 3"),
        lambda s: r.where(sold_pairs(s), lambda row: row[0] > 3),
    ),
    "checkpoint of a limit": Case(lambda t: sold(t).limit(7).checkpoint(), sold_pairs, chosen=7),
    "cache of a limit": Case(lambda t: sold(t).limit(7).cache().where("id >= 0"), sold_pairs, chosen=7),
    "two checkpoints of the same columns": Case(
        checkpointed_both,
        lambda s: (
            r.select(r.where(s.orders, lambda o: o.id < 9), two)
            + r.select(r.where(s.orders, lambda o: o.amount > 20), two)
        ),
    ),
    "localCheckpoint of what was collected before": Case(
        collected_and_checkpointed, lambda s: r.where(sold_pairs(s), lambda row: row[0] > 3)
    ),
    "localCheckpoint, an RDD": as_rdd(lambda t: sold(t).localCheckpoint().rdd.map(pair), sold_pairs),
    "localCheckpoint of a DataFrame of an RDD": Case(
        lambda t: words(t).toDF("w string, n int").localCheckpoint().where("n > 2"),
        lambda s: r.where(words_of(s), lambda row: row[1] > 2),
    ),
}


CASES = {**TO_RDD, **TO_FRAME, **BETWEEN}

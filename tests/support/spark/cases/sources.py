"""Cases of what DataFrames are read from, cached in, and run Python over: queries with their oracles."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StringType

from tests.support.spark import relational as r
from tests.support.spark.arrow_functions import counted_group, counted_groups
from tests.support.spark.dataframe_oracle import Case, Tables
from tests.support.spark.shop import TEXT_SCHEMA, Order, Shop

#: Files are cut into splits of a few rows.
SPLIT = {"spark.sql.files.maxPartitionBytes": "40", "spark.sql.files.openCostInBytes": "1"}


#: Several files are one partition.
PACKED = {
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.files.openCostInBytes": "1",
}


def line(row: str) -> tuple[str]:
    return (row,)


def four(row: Order) -> tuple[Any, ...]:
    return row[:4]


def by_tag(row: Order) -> tuple[Any]:
    return (row.tag,)


def count(rows: list[Any]) -> tuple[int]:
    return (len(rows),)


def read(t: Tables, format: str, name: str, **options: str) -> DataFrame:
    return t.spark.read.format(format).options(**options).schema(TEXT_SCHEMA).load(t.shop.path(name))


def orders_table(t: Tables, name: str, columns: str, more: str) -> DataFrame:
    t.spark.sql(f"create table if not exists {name} ({columns}) using parquet {more}")
    return t.spark.table(name)


COLUMNS = "id int, customer int, amount bigint, tag string, price double"


FILES: dict[str, Case] = {
    "text": Case(lambda t: t.spark.read.text(t.shop.path("lines")), lambda s: r.select(s.lines, line)),
    "text in splits": Case(
        lambda t: t.spark.read.text(t.shop.path("lines")), lambda s: r.select(s.lines, line), conf=SPLIT
    ),
    "text, several files in a partition": Case(
        lambda t: t.spark.read.text(t.shop.path("lines")), lambda s: r.select(s.lines, line), conf=PACKED
    ),
    "text, filtered": Case(
        lambda t: t.spark.read.text(t.shop.path("lines")).where("value like '%be%'"),
        lambda s: r.select(r.where(s.lines, lambda row: "be" in row), line),
        conf=PACKED,
    ),
    "Parquet in splits": Case(
        lambda t: t.orders.where("amount > 3").select("id", "customer", "amount", "tag"),
        lambda s: r.select(r.where(s.orders, lambda o: o.amount > 3), four),
        conf={**SPLIT, "spark.sql.files.maxPartitionBytes": "700"},
    ),
    "Parquet, several files in a partition": Case(
        lambda t: t.orders.where("id > 6").select("id", "customer", "amount", "tag"),
        lambda s: r.select(r.where(s.orders, lambda o: o.id > 6), four),
        conf=PACKED,
    ),
    "Parquet without vectors": Case(
        lambda t: t.orders.where("id > 13 and amount > 0").select("id", "customer", "amount", "tag"),
        lambda s: r.select(r.where(s.orders, lambda o: o.id > 13 and o.amount > 0), four),
        conf={"spark.sql.parquet.enableVectorizedReader": "false"},
    ),
    "one file of several": Case(
        lambda t: t.spark.read.parquet(t.shop.path("orders/orders-3.parquet")).select("id"),
        lambda s: r.select(r.where(s.orders, lambda o: o.id >= 12), lambda o: (o.id,)),
    ),
    "the metadata that Spark shows": Case(
        lambda t: t.orders.select("id", "_metadata.file_name", "_metadata.row_index").where("row_index > 1"),
        lambda s: r.where(
            [((row.id, *next(iter(place))), place) for row, place in s.orders], lambda row: row[2] > 1
        ),
    ),
    "CSV": Case(lambda t: read(t, "csv", "csv"), lambda s: r.select(s.csv, four)),
    "CSV in splits": Case(
        lambda t: read(t, "csv", "csv").where("amount > 0"),
        lambda s: r.select(r.where(s.csv, lambda o: o.amount > 0), four),
        conf=SPLIT,
    ),
    "CSV with headers": Case(
        lambda t: read(t, "csv", "headed", header="true"), lambda s: r.select(s.headed, four)
    ),
    "CSV with headers, in splits": Case(
        lambda t: read(t, "csv", "headed", header="true"), lambda s: r.select(s.headed, four), conf=SPLIT
    ),
    "CSV with headers, several files in a partition": Case(
        lambda t: read(t, "csv", "headed", header="true").select("id", "tag"),
        lambda s: r.select(s.headed, lambda o: (o.id, o.tag)),
        conf=PACKED,
    ),
    "CSV with empty lines": Case(lambda t: read(t, "csv", "csv_gaps"), lambda s: r.select(s.csv_gaps, four)),
    "CSV whose schema is inferred": Case(
        lambda t: t.spark.read.csv(t.shop.path("headed"), header=True, inferSchema=True).select(
            "id", "amount"
        ),
        lambda s: r.select(s.headed, lambda o: (o.id, o.amount)),
    ),
    "JSON": Case(lambda t: read(t, "json", "json"), lambda s: r.select(s.json, four)),
    "JSON in splits": Case(
        lambda t: read(t, "json", "json").where("tag = 'x'"),
        lambda s: r.select(r.where(s.json, lambda o: o.tag == "x"), four),
        conf=SPLIT,
    ),
    "JSON with empty lines": Case(
        lambda t: read(t, "json", "json_gaps"), lambda s: r.select(s.json_gaps, four)
    ),
    "ORC": Case(lambda t: read(t, "orc", "orc"), lambda s: r.select(s.orc, four)),
    "ORC in splits": Case(
        lambda t: read(t, "orc", "orc").where("tag = 'x'"),
        lambda s: r.select(r.where(s.orc, lambda o: o.tag == "x"), four),
        conf={**SPLIT, "spark.sql.files.maxPartitionBytes": "300"},
    ),
    "ORC in splits, without vectors, several in a partition": Case(
        lambda t: read(t, "orc", "orc").repartition(2),
        lambda s: r.select(s.orc, four),
        conf={
            **SPLIT,
            "spark.sql.files.maxPartitionBytes": "500",
            "spark.sql.orc.enableVectorizedReader": "false",
        },
    ),
    "ORC, several files in a partition": Case(
        lambda t: read(t, "orc", "orc").where("id > 3"),
        lambda s: r.select(r.where(s.orc, lambda o: o.id > 3), four),
        conf=PACKED,
    ),
    "ORC, filtered": Case(
        lambda t: read(t, "orc", "orc").where("id > 12"),
        lambda s: r.select(r.where(s.orc, lambda o: o.id > 12), four),
    ),
    "table": Case(
        lambda t: orders_table(t, "kept", COLUMNS, f"location '{t.shop.path('orders')}'").select(
            "id", "amount"
        ),
        lambda s: r.select(s.orders, lambda o: (o.id, o.amount)),
    ),
    "view of a view": Case(
        lambda t: (
            t.spark.sql("create or replace temp view big as select id, tag from orders where amount > 12")
            and t.spark.sql("select tag, count(*) from big group by tag")
        ),
        lambda s: r.aggregate(r.where(s.orders, lambda o: o.amount > 12), by_tag, count),
    ),
    "join of text and Parquet": Case(
        lambda t: (
            t.spark.read.text(t.shop.path("lines"))
            .join(t.baskets, F.expr("length(value) = id"))
            .select("value", "id")
        ),
        lambda s: r.select(
            r.join(s.lines, s.baskets, lambda label, b: len(label) == b.id), lambda p: (p[0], p[1].id)
        ),
    ),
}


def bounded(query: Any, oracle: Any, *, of: str = "orders", exact: bool | None = False) -> Case:
    """A query that may be followed no further than to all rows of its tables, if it says so."""
    tables = of.split()
    return Case(
        query,
        oracle,
        bound=lambda s: [
            (row, r.all_of(pair for name in tables for pair in getattr(s, name))) for row, _ in oracle(s)
        ],
        exact=exact,
    )


def cached(t: Tables) -> DataFrame:
    kept = t.orders.where("amount > 5").cache()
    counted = kept.groupBy("tag").count()
    return counted.union(kept.selectExpr("concat(tag, '!')", "amount"))


def cached_of(s: Shop) -> r.Data:
    kept = r.where(s.orders, lambda o: o.amount > 5)
    return r.aggregate(kept, by_tag, count) + r.select(kept, lambda o: (o.tag and f"{o.tag}!", o.amount))


def cached_before(t: Tables) -> DataFrame:
    kept = t.orders.where("amount > 7").select("id", "tag").persist(StorageLevel.DISK_ONLY)
    kept.count()
    return kept.where("id > 4").union(kept.where("id < 9"))


def cached_before_of(s: Shop) -> r.Data:
    kept = r.select(r.where(s.orders, lambda o: o.amount > 7), lambda o: (o.id, o.tag))
    return r.where(kept, lambda row: row[0] > 4) + r.where(kept, lambda row: row[0] < 9)


def cached_aggregate(t: Tables) -> DataFrame:
    kept = t.orders.groupBy("tag").agg(F.count("*").alias("n")).cache()
    return kept.join(t.labels, "tag").select("tag", "n", "weight")


KEPT: dict[str, Case] = {
    "cache, read twice": Case(cached, cached_of),
    "cache that is there before": Case(cached_before, cached_before_of),
    "cache of an aggregate": Case(
        cached_aggregate,
        lambda s: r.select(
            r.join(r.aggregate(s.orders, by_tag, count), s.labels, lambda n, label: r.equal(n[0], label.tag)),
            lambda p: (*p[0], p[1].weight),
        ),
    ),
    "cached table": Case(
        lambda t: (
            t.spark.sql("cache table hot as select id, amount from orders where amount < 20")
            and t.spark.sql("select id from hot where amount > 3")
        ),
        lambda s: r.select(r.where(s.orders, lambda o: 3 < o.amount < 20), lambda o: (o.id,)),
    ),
    "checkpoint": Case(
        lambda t: t.orders.where("amount > 5").select("id", "tag").checkpoint().where("id > 3"),
        lambda s: r.select(r.where(s.orders, lambda o: o.amount > 5 and o.id > 3), lambda o: (o.id, o.tag)),
    ),
}


# Without annotations, from which PySpark would choose how the rows come to a function.
doubled = F.udf(lambda amount: amount * 2, IntegerType())


joined = F.udf(lambda tag, customer: f"{tag}/{customer}", StringType())


def small(rows: Iterator[Any]) -> Iterator[Any]:
    """Rows of small amounts, with the partition that they are in."""
    from pyspark import TaskContext

    split = TaskContext.get().partitionId()
    for batch in rows:
        table = pa.Table.from_batches([batch])
        kept = table.filter(pa.compute.less(table["amount"], 20)).select(["id"])
        yield from kept.append_column("split", pa.array([split] * len(kept), pa.int32())).to_batches()


def count_of_customer(table: pa.Table) -> pa.Table:
    return pa.table({"customer": table["customer"][:1], "n": pa.array([len(table)], pa.int64())})


def database(t: Tables) -> DataFrame:
    """Orders in a table of Derby's, behind a catalog that lets the database compute what it can."""
    spark, at = t.spark, "jdbc:derby:memory:sums;create=true"
    driver = "org.apache.derby.jdbc.EmbeddedDriver"
    log = str(t.shop.folder.parent / "derby.log")
    spark._jvm.java.lang.System.setProperty("derby.stream.error.file", log)
    catalog = "spark.sql.catalog.shops"
    spark.conf.set(catalog, "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog")
    for name, value in {"url": at, "driver": driver, "pushDownAggregate": "true"}.items():
        spark.conf.set(f"{catalog}.{name}", value)
    orders = t.orders.select(F.col("id").alias("ID"), F.col("amount").alias("AMOUNT"))
    orders.write.jdbc(at, "APP.ORDERS", "overwrite", {"driver": driver})
    return spark.table("shops.APP.ORDERS")


def cogrouped(s: Shop) -> r.Data:
    sides = [dict(r.groups(table, lambda row: row.tag)) for table in (s.orders, s.labels)]
    return [
        (
            (tag, *(len(side.get(tag, [])) for side in sides)),
            r.all_of(row for side in sides for row in side.get(tag, [])),
        )
        for tag in {**sides[0], **sides[1]}
    ]


def amount_below(most: int) -> Any:
    return lambda s: r.select(r.where(s.orders, lambda o: o.amount < most), lambda o: (o.id, 0))


PYTHON: dict[str, Case] = {
    "Python UDF": Case(
        lambda t: t.orders.select(
            "id", doubled(F.col("amount").cast("int")).alias("d"), joined("tag", "customer")
        ),
        lambda s: r.select(s.orders, lambda o: (o.id, o.amount * 2, f"{o.tag}/{o.customer}")),
    ),
    "Python UDF in a filter, under groupBy": Case(
        lambda t: t.orders.where(doubled(F.col("amount").cast("int")) > 20).groupBy("tag").count(),
        lambda s: r.aggregate(r.where(s.orders, lambda o: o.amount > 10), by_tag, count),
    ),
    "groupBy of a Python UDF": Case(
        lambda t: t.orders.groupBy(joined("tag", "customer").alias("k")).count(),
        lambda s: r.aggregate(s.orders, lambda o: (f"{o.tag}/{o.customer}",), count),
    ),
    "Python UDF over an aggregate": Case(
        lambda t: t.orders.groupBy("tag").agg(doubled(F.count("*").cast("int")).alias("n")),
        lambda s: r.aggregate(s.orders, by_tag, lambda rows: (len(rows) * 2,)),
    ),
    "mapInArrow": bounded(
        lambda t: t.orders.coalesce(1).mapInArrow(small, "id int, split int"),
        amount_below(20),
    ),
    "applyInArrow": Case(
        lambda t: t.orders.groupBy("tag").applyInArrow(counted_group, "tag string, n long"),
        lambda s: r.aggregate(s.orders, by_tag, count),
    ),
    "applyInArrow over an aggregate": Case(
        lambda t: (
            t.orders.groupBy("customer", "tag")
            .count()
            .groupBy("customer")
            .applyInArrow(count_of_customer, "customer int, n long")
        ),
        lambda s: [
            ((customer, len({row.tag for row, _ in rows})), r.all_of(rows))
            for customer, rows in r.groups(s.orders, lambda o: o.customer)
        ],
    ),
    "cogroup, applyInArrow": Case(
        lambda t: (
            t.orders.groupBy("tag")
            .cogroup(t.labels.groupBy("tag"))
            .applyInArrow(counted_groups, "tag string, n long, m long")
        ),
        cogrouped,
    ),
}


COMPUTED: dict[str, Case] = {
    "aggregate of a database": Case(
        lambda t: database(t).agg(F.max("AMOUNT"), F.count("*")),
        lambda s: [((max(o.amount for o, _ in s.orders), len(s.orders)), frozenset())],
        exact=False,
    ),
    "rows of a database": Case(
        lambda t: database(t).where("AMOUNT > 4").select("ID"),
        lambda s: [((o.id,), frozenset()) for o, _ in s.orders if o.amount > 4],
    ),
}


CASES = {**FILES, **KEPT, **PYTHON, **COMPUTED}

try:
    import pandas as pd
except ImportError:  # PySpark's functions over pandas need it, and PySpark itself does not
    pd = None
else:

    def small_in_pandas(frames: Iterator[Any]) -> Iterator[Any]:
        for frame in frames:
            kept = frame[frame.amount < 20]
            yield pd.DataFrame({"id": kept.id, "split": 0})

    def twice(numbers: pd.Series) -> pd.Series:
        return numbers * 2

    def sum_of(numbers: pd.Series) -> int:
        return int(numbers.sum())

    def counted_in_pandas(frame: Any) -> Any:
        return pd.DataFrame({"tag": frame.tag[:1], "n": len(frame)})

    def indexed(t: Tables) -> DataFrame:
        """With the index that pandas on Spark gives rows."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return t.orders.where("amount > 4").pandas_api().to_spark(index_col="at")

    CASES |= {
        "pandas on Spark": Case(
            lambda t: indexed(t).where("at >= 0 and id > 3").select("id", "tag"),
            lambda s: r.select(
                r.where(s.orders, lambda o: o.amount > 4 and o.id > 3), lambda o: (o.id, o.tag)
            ),
        ),
        "pandas on Spark, aggregated": Case(
            lambda t: indexed(t).groupBy("tag").agg(F.count("at"), F.max("at") < 26),
            lambda s: r.aggregate(
                r.where(s.orders, lambda o: o.amount > 4), by_tag, lambda rows: (len(rows), True)
            ),
        ),
        "pandas UDF": Case(
            lambda t: t.orders.select("id", F.pandas_udf(twice, "long")("amount").alias("d")).where("d > 8"),
            lambda s: r.select(r.where(s.orders, lambda o: o.amount > 4), lambda o: (o.id, o.amount * 2)),
        ),
        "aggregate by a pandas UDF": Case(
            lambda t: t.orders.groupBy("tag").agg(F.pandas_udf(sum_of, "long")("amount")),
            lambda s: r.aggregate(s.orders, by_tag, lambda rows: (sum(row.amount for row in rows),)),
        ),
        "mapInPandas": bounded(
            lambda t: (
                t.orders.select("id", "amount").coalesce(1).mapInPandas(small_in_pandas, "id int, split int")
            ),
            amount_below(20),
        ),
        "applyInPandas": Case(
            lambda t: (
                t.orders.select("tag", "id")
                .groupBy("tag")
                .applyInPandas(counted_in_pandas, "tag string, n long")
            ),
            lambda s: r.aggregate(s.orders, by_tag, count),
        ),
    }

"""Queries that others listen to: run as a program, each of them once, with what a conf says.

    python -m tests.support.spark.observed_queries SHOP OUTPUT CONF

SHOP is the folder of `make_shop`. Rows go below OUTPUT. CONF is JSON. Prints how many lines the file
OUTPUT/events.json had before the first query and behind each, as JSON: what a listener of Spark wrote there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

VIEWS = ("orders", "customers", "labels", "baskets", "by_tag")
EVENTS = "events.json"

Query = Callable[[SparkSession, str], object]


def _writes(text: str, kind: str = "parquet") -> Query:
    return lambda spark, path: getattr(spark.sql(text).write, kind)(path)


def _collects(text: str) -> Query:
    return lambda spark, path: spark.sql(text).collect()


def _runs(*statements: str) -> Query:
    def run(spark: SparkSession, path: str) -> None:
        for statement in statements:
            spark.sql(statement.format(path=path))

    return run


def _cached(spark: SparkSession, path: str) -> None:
    large = spark.table("orders").where("amount > 3").cache()
    large.groupBy("tag").count().write.parquet(f"{path}/counts")
    large.join(spark.table("labels"), "tag").write.parquet(f"{path}/joined")
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()  # OpenLineage looks at caches that are there
    large.unpersist(blocking=True)


def _python(spark: SparkSession, path: str) -> None:
    twice = F.udf(lambda amount: amount * 2, "long")
    spark.table("orders").where("id > 2").select("id", twice("amount").alias("twice")).write.json(path)


def _by_group(spark: SparkSession, path: str) -> None:
    spark.table("orders").groupBy("tag").applyInPandas(
        lambda frame: frame[["id", "amount"]], "id int, amount long"
    ).write.parquet(path)


def _of_rdd(spark: SparkSession, path: str) -> None:
    rows = spark.sparkContext.parallelize([(1, "a"), (2, "b")], 2).toDF(["key", "label"])
    rows.join(spark.table("customers"), "key").write.parquet(path)


def _to_rdd(spark: SparkSession, path: str) -> None:
    spark.table("orders").where("amount > 3").rdd.map(str).saveAsTextFile(path)


def _checkpoint(spark: SparkSession, path: str) -> None:
    spark.table("orders").groupBy("tag").count().localCheckpoint().write.parquet(path)


def _reads_written(spark: SparkSession, path: str) -> None:
    spark.table("orders").select("id", "tag").write.option("header", True).csv(f"{path}/first")
    read = spark.read.option("header", True).csv(f"{path}/first")
    read.where("tag = 'x'").write.parquet(f"{path}/second")


_CUSTOMERS = "JOIN customers ON customer = key"
_NAMED = "WITH named AS (SELECT id, tag, rand(7) AS r FROM orders WHERE amount > 0) "

QUERIES: Mapping[str, Query] = {
    "a filter": _writes("SELECT * FROM orders WHERE amount > 3 AND tag = 'x'"),
    "expressions": _writes("SELECT id, upper(tag) AS t, price * amount AS total FROM orders", "csv"),
    "lines of CSV": _writes("SELECT id, tag FROM headed WHERE amount > 3", "json"),
    "lines of JSON": _writes("SELECT id, customer FROM json WHERE tag IS NOT NULL"),
    "a folder for each tag": _writes("SELECT id, tag FROM by_tag WHERE tag <> 'y' AND amount > 1"),
    "an inner join": _writes(f"SELECT name, amount FROM orders {_CUSTOMERS} WHERE price > 0"),
    "a left join": _writes(f"SELECT id, name FROM orders LEFT {_CUSTOMERS}"),
    "a right join": _writes(f"SELECT id, name FROM orders RIGHT {_CUSTOMERS}"),
    "a full join": _writes(f"SELECT id, name FROM orders FULL {_CUSTOMERS} AND amount > 2"),
    "a cross join": _writes("SELECT id, weight FROM orders CROSS JOIN labels"),
    "a self-join": _writes("SELECT a.id, b.amount FROM orders a JOIN orders b ON a.id = b.customer"),
    "IN": _writes("SELECT id FROM orders WHERE customer IN (SELECT key FROM customers WHERE name > 'b')"),
    "EXISTS with more than equal keys": _writes(
        "SELECT id FROM orders o WHERE EXISTS "
        "(SELECT 1 FROM labels l WHERE l.tag = o.tag AND weight < amount)"
    ),
    "NOT EXISTS": _writes(
        "SELECT id FROM orders WHERE NOT EXISTS (SELECT 1 FROM customers WHERE customer = key)"
    ),
    "a scalar subquery": _writes("SELECT id FROM orders WHERE amount > (SELECT max(weight) FROM labels)"),
    "a correlated subquery": _writes(
        "SELECT id, (SELECT sum(weight) FROM labels l WHERE l.tag = o.tag) AS weight FROM orders o"
    ),
    "groups": _writes(
        "SELECT tag, sum(amount) AS total, count(DISTINCT customer) AS n FROM orders "
        "WHERE id > 1 GROUP BY tag HAVING count(*) > 1"
    ),
    "a rollup": _writes("SELECT tag, customer, max(price) AS p FROM orders GROUP BY ROLLUP (tag, customer)"),
    "a pivot": lambda spark, path: spark.table("orders").groupBy("customer").pivot("tag", ["x", "y"])
    .sum("amount").write.parquet(path),
    "a window": _writes("SELECT id, sum(amount) OVER (PARTITION BY tag) AS total FROM orders WHERE id > 3"),
    "the first of each group": _writes(
        "SELECT id, tag FROM (SELECT *, row_number() OVER (PARTITION BY tag ORDER BY amount, id) AS place "
        "FROM orders) WHERE place < 3"
    ),
    "a union": _writes("SELECT id AS n FROM orders WHERE amount > 3 UNION ALL SELECT weight FROM labels"),
    "an intersection": _writes("SELECT tag FROM orders INTERSECT SELECT tag FROM labels"),
    "all but": _writes("SELECT tag FROM orders EXCEPT ALL SELECT tag FROM labels WHERE weight > 0"),
    "distinct rows": _writes("SELECT DISTINCT customer, tag FROM orders"),
    "explode": _writes("SELECT id, item FROM baskets LATERAL VIEW explode(items) AS item WHERE item > 'a'"),
    "a named query that is read twice": _writes(
        f"{_NAMED} SELECT * FROM named WHERE r < 0.7 UNION ALL SELECT * FROM named"
    ),
    "sorted, the first rows": _writes("SELECT id, tag FROM orders ORDER BY amount, id LIMIT 5"),
    "repartitioned": lambda spark, path: spark.table("orders").where("amount > 3").repartition(3)
    .write.parquet(path),
    "partitioned output": lambda spark, path: spark.table("orders").where("amount > 3")
    .write.partitionBy("tag").parquet(path),
    "CREATE TABLE AS SELECT": _runs(
        "CREATE TABLE large USING parquet LOCATION '{path}' AS SELECT id, tag FROM orders WHERE amount > 3"
    ),
    "INSERT": _runs(
        "CREATE TABLE filled (id INT, tag STRING) USING csv LOCATION '{path}'",
        f"INSERT INTO filled SELECT id, name FROM orders {_CUSTOMERS}",
        "INSERT OVERWRITE filled SELECT id, tag FROM orders WHERE amount > 5",
    ),
    "several INSERTs": _runs(
        "CREATE TABLE small (id INT) USING parquet LOCATION '{path}/small'",
        "CREATE TABLE other (id INT) USING parquet LOCATION '{path}/other'",
        "FROM orders INSERT INTO small SELECT id WHERE amount < 3 "
        "INSERT INTO other SELECT id WHERE amount > 3",
    ),
    "a view": _runs(
        "CREATE TEMPORARY VIEW seen AS SELECT id, amount FROM orders WHERE amount > 3",
        "INSERT OVERWRITE DIRECTORY '{path}' USING parquet SELECT id FROM seen WHERE id > 5",
    ),
    "a cache": _cached,
    "a Python function": _python,
    "groups of a Python function": _by_group,
    "a DataFrame of an RDD": _of_rdd,
    "an RDD of a DataFrame": _to_rdd,
    "a checkpoint": _checkpoint,
    "a file that was written": _reads_written,
    "collect": _collects(f"SELECT name, count(*) FROM orders {_CUSTOMERS} WHERE amount > 3 GROUP BY name"),
    "take": lambda spark, path: spark.table("orders").where("amount > 3").take(3),
    "count": lambda spark, path: spark.table("orders").where("amount > 3").count(),
}  # fmt: skip


def session_of(context: SparkContext, shop: str) -> SparkSession:
    """With the tables as views."""
    spark = SparkSession(context)
    frames: dict[str, DataFrame] = {name: spark.read.parquet(f"{shop}/{name}") for name in VIEWS}
    columns = "id int, customer int, amount bigint, tag string"
    frames["headed"] = spark.read.schema(columns).option("header", True).csv(f"{shop}/headed")
    frames["json"] = spark.read.schema(columns).json(f"{shop}/json")
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    return spark


def main(shop: str, output: str, conf: Mapping[str, str]) -> None:
    folder = Path(output)
    with SparkContext(conf=SparkConf().setAll(list(conf.items()))) as context:
        context.setLogLevel("ERROR")
        spark = session_of(context, shop)
        bus = context._jsc.sc().listenerBus()
        lines = [_lines_behind(bus, folder / EVENTS)]
        for at, query in enumerate(QUERIES.values()):
            query(spark, str(folder / f"out-{at}"))
            lines.append(_lines_behind(bus, folder / EVENTS))
    print(json.dumps(lines))


def _lines_behind(bus: Any, events: Path) -> int:
    bus.waitUntilEmpty()
    return len(events.read_text().splitlines())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))

"""With lineage on, DataFrames give the same rows, schemas, files and errors, by plans as good as without."""

from __future__ import annotations

import random
import re
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, GroupedData, Observation, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType

from tests.support.lanes import sampled, selected
from tests.support.spark.application import run_application
from tests.support.spark.arrow_functions import counted_group, counted_groups
from tests.support.spark.dataframe_oracle import Tables, conf_of
from tests.support.spark.shop import TEXT_SCHEMA, Shop, make_shop

# The first test of the module runs the jobs of all of them.
pytestmark = pytest.mark.timeout(1800)

Job = Callable[[Tables], Any]

MERGE = {"spark.sql.autoBroadcastJoinThreshold": "-1"}


#: What of the names of files is drawn by lot.
_DRAWN = r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
#: Lines of PySpark in what a Python worker tells of an error.
_FRAMES = re.compile(r'  File "[^"]*(?:/pyspark/|/spark_agent/)[^"]*", line.*\n(?:    .*\n)*')


def rows(frame: DataFrame) -> list[str]:
    return [repr(tuple(row)) for row in frame.collect()]


def schema(frame: DataFrame) -> list[Any]:
    return [frame.schema.json(), frame.columns, frame.dtypes, rows(frame)]


def parts(
    frame: DataFrame, write: Callable[[Any, str], None], t: Tables, name: str
) -> list[tuple[str, bytes]]:
    """(name without what is drawn by lot, bytes) of each file of an output."""
    folder = t.shop.folder.parent / f"out-{name}"
    write(frame.write.mode("overwrite"), str(folder))
    return sorted(
        (re.sub(_DRAWN, "", str(part.relative_to(folder))), part.read_bytes())
        for part in folder.rglob("part-*")
    )


def observed(t: Tables) -> Any:
    observation = Observation()
    frame = t.orders.observe(observation, F.count("*").alias("n"), F.max("id")).where("amount > 3")
    return rows(frame), observation.get


def counted_calls(t: Tables) -> Any:
    calls = t.spark.sparkContext.accumulator(0)

    def count(number):  # type: ignore[no-untyped-def]  # PySpark reads annotations
        calls.add(1)
        return number

    call = F.udf(count, "int")
    frame = t.orders.select(call("id").alias("i"))
    return rows(frame), rows(frame.groupBy("i").count().orderBy("i")), calls.value


def joined_with_itself(t: Tables) -> Any:
    """Values that differ each time they are computed. Spark computes the two sides once."""
    drawn = F.udf(random.random, "double").asNondeterministic()
    with conf_of(t.spark, MERGE):
        frame = t.orders.select("id", drawn().alias("d")).groupBy("d").count()
        return frame.alias("a").join(frame.alias("b"), F.expr("a.d = b.d")).count()


def cogrouped(frame: DataFrame) -> DataFrame:
    """A frame with itself: both sides have the same columns to begin with."""
    by_id = frame.groupBy("id")
    return by_id.cogroup(by_id).applyInArrow(lambda _, other: other, "id int, amount long")


def pruned(t: Tables) -> Any:
    frame = partitioned(t).join(F.broadcast(t.labels.where("weight > 2")), "tag").select("id", "weight")
    conf = {"spark.sql.adaptive.enabled": "false"}
    with conf_of(t.spark, conf):
        # With lineage the small side is scanned once more, to find the partitions.
        filters = [line for line in pushed(plan(frame)) if "dynamicpruning" in line]
    assert filters
    return rows(frame), filters


def beside_a_subquery(t: Tables) -> Any:
    text = query("select id from orders where amount > (select avg(weight) from labels) and id = 3", **OFF)(t)
    filters = [line for line in pushed(text) if line.startswith("PushedFilters")]
    assert any("EqualTo(id,3)" in line for line in filters), filters
    return filters


def without_the_first(t: Tables) -> Any:
    """On the driver, in the order of the partitions."""
    results = []
    for text in (
        "offset 3",
        "limit 9 offset 3",
        "order by amount offset 3",
        "order by amount limit 9 offset 3",
    ):
        frame = t.spark.sql(f"select id from orders {text}")
        results.append([text, rows(frame), sorted(map(repr, operators(plan(frame)).items()))])
    return results


def lines_of(t: Tables, format: str, **options: str) -> DataFrame:
    return t.spark.read.format(format).options(**options).schema(TEXT_SCHEMA).load(t.shop.path(format))


def strict(t: Tables) -> Any:
    path = t.shop.folder.parent / "malformed.csv"
    path.write_text("1,2\n3,x\n5,6\n")
    read = t.spark.read.csv(str(path), schema="a int, b int", mode="FAILFAST")
    return rows(read.where("a <> 3 and b + a > 0"))


def in_threads(t: Tables) -> Any:
    results: dict[int, Any] = {}

    def work(number: int) -> None:
        results[number] = rows(t.orders.where(F.col("amount") > number).groupBy("tag").count().orderBy("tag"))

    threads = [threading.Thread(target=work, args=(number,)) for number in (3, 9, 20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(results.items())


def streamed(t: Tables) -> Any:
    folder = t.shop.folder.parent / "stream"
    frame = t.spark.readStream.schema(t.orders.schema).parquet(t.shop.path("orders"))
    query = (
        frame.where("amount > 3")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "state"))
        .trigger(availableNow=True)
        .start(str(folder / "out"))
    )
    query.awaitTermination(1200)
    return sorted(rows(t.spark.read.parquet(str(folder / "out"))))


def cached(t: Tables) -> Any:
    frame = t.orders.where("amount > 3").cache()
    states = [frame.is_cached, str(frame.storageLevel), rows(frame), frame.count(), rows(frame.select("id"))]
    frame.unpersist(blocking=True)
    return [*states, frame.is_cached, rows(frame.limit(3))]


def heads(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[["customer", "id"]].head(3)


def description(frame: pd.DataFrame) -> str:
    return f"{frame.to_dict('tight')} {frame.dtypes.to_dict()} {type(frame.columns)} {frame.index!r}"


def seen(key: Any, frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"key": [repr(key)], "frame": [description(frame)]})


def both_seen(key: Any, left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"key": [repr(key)] * 2, "frame": [description(left), description(right)]})


def seen_in_arrow(table: pa.Table) -> pa.Table:
    return pa.table({"frame": [f"{table.schema} {table.schema.metadata} {table.to_pylist()}"]})


ROWS: dict[str, Job] = {
    "ids and partitions that Spark gives": lambda t: rows(
        t.orders.where("amount > 0").select(
            "id", F.monotonically_increasing_id(), F.spark_partition_id(), F.input_file_name() != ""
        )
    ),
    "random numbers of a seed": lambda t: rows(t.orders.where("id > 3").select("id", F.rand(7), F.randn(8))),
    "order of a scan": lambda t: rows(t.orders),
    "order of a groupBy": lambda t: rows(
        t.orders.groupBy("tag", "customer").agg(F.sum("amount"), F.first("id"))
    ),
    "order of a join": lambda t: rows(t.orders.join(t.customers, F.expr("customer = key"), "full")),
    "order of a sort of equal keys": lambda t: rows(t.orders.coalesce(1).orderBy("tag")),
    "order of a window": lambda t: rows(
        t.orders.select("id", F.rank().over(Window.partitionBy("tag").orderBy("amount")))
    ),
    "order of applyInPandas": lambda t: rows(
        t.orders.repartition(3).groupBy("customer").applyInPandas(heads, "customer int, id int")
    ),
    "order of applyInPandas over a join": lambda t: rows(
        t.orders.join(t.customers, F.expr("customer = key"))
        .groupBy("key")
        .applyInPandas(heads, "customer int, id int")
    ),
    "order of applyInArrow": lambda t: rows(
        by_tag(t.orders).applyInArrow(lambda rows: rows.select(["tag", "id"]), "tag string, id int")
    ),
    "order of a cogroup": lambda t: rows(
        by_tag(t.orders)
        .cogroup(by_tag(t.labels))
        .applyInPandas(lambda one, other: one[["tag", "id"]].head(3), "tag string, id int")
    ),
    "what a function over a group sees": lambda t: rows(
        t.orders.groupBy("price", "tag").applyInPandas(seen, "key string, frame string")
    ),
    "what a function over a table sees": lambda t: rows(
        by_tag(t.orders).applyInArrow(seen_in_arrow, "frame string")
    ),
    "what a function over a cogroup sees": lambda t: rows(
        by_tag(t.orders).cogroup(by_tag(t.labels)).applyInPandas(both_seen, "key string, frame string")
    ),
    "dropDuplicates": lambda t: rows(t.orders.coalesce(1).dropDuplicates(["tag"])),
    "limit, take, first, tail": lambda t: [
        rows(t.orders.limit(7)),
        repr(t.orders.where("amount > 9").take(4)),
        repr(t.orders.first()),
        repr(t.orders.tail(3)),
        t.orders.isEmpty(),
    ],
    "sample and randomSplit": lambda t: [
        rows(t.orders.sample(fraction=0.5, seed=2)),
        rows(t.orders.sample(True, 1.5, 9)),
        [rows(part) for part in t.orders.randomSplit([0.3, 0.7], 4)],
    ],
    "show, count, describe": lambda t: [
        t.orders.where("amount > 3")._jdf.showString(5, 20, False),
        t.orders.count(),
        rows(t.orders.describe("amount", "tag")),
    ],
    "toLocalIterator and foreach": lambda t: [
        [tuple(row) for row in t.orders.toLocalIterator()].__repr__(),
        t.orders.foreach(lambda row: None),
        t.orders.foreachPartition(lambda rows: None),
    ],
    "toArrow": lambda t: [str(t.orders.toArrow().schema), repr(t.orders.orderBy("id").toArrow().to_pydict())],
    "rdd": lambda t: [
        t.orders.rdd.getNumPartitions(),
        repr(t.orders.rdd.map(tuple).glom().collect()),
        repr(t.orders.groupBy("tag").count().rdd.collect()),
    ],
    "schema of a projection": lambda t: schema(
        t.orders.select("id", F.expr("amount + 1 as more"), F.lit(None))
    ),
    "schema of an aggregate": lambda t: schema(
        t.orders.groupBy("tag").agg(F.collect_set("customer"), F.avg("id"))
    ),
    "schema of columns of one name": lambda t: schema(
        t.orders.alias("a").join(t.orders.alias("b"), F.expr("a.id = b.id"))
    ),
    "local rows": lambda t: [
        rows(t.spark.createDataFrame([(1, "a"), (2, None)], "n int, s string").where("n > 1")),
        rows(t.spark.sql("select * from values (1, 'a'), (2, 'b') as v(n, s) where n < 2")),
        rows(t.spark.range(9).where("id % 3 = 1")),
        rows(t.spark.sql("select 1 as one, 'a' as a")),
        rows(t.spark.createDataFrame([], "n int")),
    ],
    "rows of an RDD": lambda t: rows(
        t.spark.sparkContext.parallelize([(i, str(i)) for i in range(9)], 3).toDF(["n", "s"]).where("n > 2")
    ),
    "semi joins with conditions": lambda t: [
        rows(t.spark.sql(f"select {hint} * from orders left semi join customers on {condition}"))
        for hint in ("", "/*+ merge(customers) */", "/*+ shuffle_hash(customers) */")
        for condition in ("customer = key and amount > length(name) * 5", "amount > length(name) * 5")
    ],
    "commands": lambda t: [
        rows(t.spark.sql("show views")),
        rows(t.spark.sql("describe orders")),
        rows(t.spark.sql("select count(*) from orders where id in (1, 2)")),
        t.spark.catalog.tableExists("orders"),
        t.spark.sql("set spark.sql.shuffle.partitions").collect(),
    ],
    "files of Parquet": lambda t: parts(
        t.orders.where("amount > 3").groupBy("tag").count(), lambda w, path: w.parquet(path), t, "parquet"
    ),
    "files of CSV by partition": lambda t: parts(
        t.orders, lambda w, path: w.partitionBy("customer").csv(path, header=True), t, "csv"
    ),
    "files of text of a sort": lambda t: parts(
        t.orders.orderBy("id").selectExpr("string(id)"), lambda w, path: w.text(path), t, "text"
    ),
    "files of JSON of a UDF": lambda t: parts(
        t.orders.select(F.udf(lambda n: f"{n}!")("id").alias("s")), lambda w, path: w.json(path), t, "json"
    ),
    "observed metrics": observed,
    "calls of a UDF": counted_calls,
    "random numbers joined with themselves": joined_with_itself,
    "threads": in_threads,
    "a stream": streamed,
    "cache": cached,
    "a frame cogrouped with itself": lambda t: sorted(rows(cogrouped(t.orders.select("id", "amount")))),
    "partitions that a join prunes": pruned,
    "filter beside a scalar subquery": beside_a_subquery,
    "rows that are left out at the beginning": without_the_first,
    "filter that another one needs": lambda t: [
        rows(read.where(f"10 / (id - {number}) > -99 and id <> {number}").select("id"))
        for read in (lines_of(t, "csv"), lines_of(t, "json"))
        for number in (3, 11)
    ],
    "malformed lines that a filter leaves out": strict,
}


fails = F.udf(lambda number: 1 // (number - 3), IntegerType())


COUNTED = "tag string, n long"


def by_tag(frame: DataFrame) -> GroupedData:
    return frame.groupBy("tag")


class DoesNotUnpickle:
    def __reduce__(self) -> Any:
        return int, ("of the user",)


def stops(frame: Any) -> Any:
    return next(iter([]))


def failing_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield next(batches).slice(0, 0).select(["tag"]).append_column("n", pa.array([], pa.int64()))
    raise ValueError("of the user")


lost = DoesNotUnpickle()


def with_lost(needs: Any) -> Any:
    return lambda frame: (needs, frame)


WRONG_IN_PANDAS: dict[str, Any] = {
    "fails": lambda frame: 1 // 0,
    "fails for a key": lambda key, frame: frame[["tag"]].assign(n=1 // (key[0] is None)),
    "raises StopIteration": stops,
    "does not unpickle": with_lost(lost),
    "gives no frame": lambda frame: "text",
    "gives a column less": lambda frame: frame[["tag"]],
    "gives a column more": lambda frame: frame[["tag", "id"]].assign(n=1),
    "gives other names": lambda frame: frame[["tag"]].assign(m=1),
    "gives too few columns without names": lambda frame: pd.DataFrame([["a"]]),
    "gives other types": lambda frame: pd.DataFrame({"tag": ["a"], "n": ["text"]}),
}
WRONG_IN_ARROW: dict[str, Any] = {
    "fails": lambda table: 1 // 0,
    "gives no table": lambda table: 7,
    "gives a batch": lambda table: table.to_batches()[0],
    "gives a column less": lambda table: table.select(["tag"]),
    "gives a column more": lambda table: table.select(["tag", "id", "customer"]),
    "gives other types": lambda table: pa.table({"tag": ["a"], "n": ["text"]}),
}


def applied(t: Tables, function: Any) -> DataFrame:
    return by_tag(t.orders.select("tag", "id")).applyInPandas(function, COUNTED)


ERRORS: dict[str, Job] = {
    "failing UDF": lambda t: t.orders.select(fails("id")).collect(),
    "failing UDF under a write": lambda t: (
        t.orders.where(fails("id") >= 0).write.mode("append").parquet(str(t.shop.folder.parent / "never"))
    ),
    "failing UDF under a shuffle": lambda t: t.orders.groupBy(fails("id")).count().collect(),
    "failing function of rows": lambda t: t.orders.foreach(lambda row: 1 // (row.id - 3)),
    "failing mapInArrow": lambda t: t.orders.mapInArrow(lambda batches: [1 // 0], "n int").collect(),
    **{
        f"applyInPandas that {what}": lambda t, function=function: applied(t, function).collect()
        for what, function in WRONG_IN_PANDAS.items()
    },
    **{
        f"applyInArrow that {what}": lambda t, function=function: (
            by_tag(t.orders).applyInArrow(function, COUNTED).collect()
        )
        for what, function in WRONG_IN_ARROW.items()
    },
    "iterator of batches that fails": lambda t: (
        by_tag(t.orders).applyInArrow(failing_batches, COUNTED).collect()
    ),
    "cogroup that fails": lambda t: (
        by_tag(t.orders).cogroup(by_tag(t.labels)).applyInPandas(lambda one, other: 1 // 0, COUNTED).collect()
    ),
    "missing column": lambda t: t.orders.select("none").collect(),
    "missing table": lambda t: t.spark.sql("select * from nowhere"),
    "syntax": lambda t: t.spark.sql("selec 1"),
    "bad cast": lambda t: t.orders.select(F.col("tag").cast("int")).where("tag is not null").collect(),
    "division by zero": lambda t: t.orders.selectExpr("amount / (id - 3)").collect(),
    "overflow of a sum": lambda t: t.orders.selectExpr("sum(9223372036854775807 - id)").collect(),
    "raise_error": lambda t: t.orders.select(F.raise_error(F.lit("of the user"))).collect(),
    "subquery of several rows": lambda t: t.spark.sql(
        "select * from orders where id = (select key from customers)"
    ).collect(),
    "correlated subquery of several rows": lambda t: t.spark.sql(
        "select id, (select name from customers where key = customer) from orders"
    ).collect(),
    "file that is missing": lambda t: t.spark.read.parquet(t.shop.path("none")).collect(),
    "output that exists": lambda t: t.orders.write.parquet(t.shop.path("orders")),
    "lines that are no JSON": lambda t: (
        t.spark.read.schema(TEXT_SCHEMA).json(t.shop.path("lines/lines-0.txt"), mode="FAILFAST").collect()
    ),
    "union of different columns": lambda t: t.orders.union(t.labels),
    "row that does not fit its schema": lambda t: t.spark.createDataFrame([("a",)], "n int").collect(),
    "rows of an RDD that do not fit their schema": lambda t: (
        t.spark.sparkContext.parallelize([("a",)], 1).toDF("n int").collect()
    ),
    "schema of an RDD that cannot be inferred": lambda t: t.spark.createDataFrame(
        t.spark.sparkContext.parallelize([(None,)], 1), ["n"]
    ),
    "DataFrame of what is none": lambda t: t.spark.createDataFrame(7),
    "failing function under a DataFrame": lambda t: (
        t.spark.sparkContext.parallelize([1, 0], 1).map(lambda n: (1 // n,)).toDF("n int").collect()
    ),
    "failing function over rows of a DataFrame": lambda t: t.orders.rdd.map(lambda row: 1 // row.id).count(),
    "rdd of a table that has gone": lambda t: t.spark.read.parquet(t.shop.path("none")).rdd,
    "sink that is missing": lambda t: t.orders.write.format("no.such").save("x"),
}


def error_of(job: Callable[[], Any]) -> list[str]:
    """Type, condition, text without numbers of plans and tasks, and frames: none may be the agent's."""
    try:
        result = job()
    except Exception as error:  # noqa: BLE001 - every kind is compared
        text = _FRAMES.sub("", re.sub(r"\n\tat .*", "", str(error), flags=re.DOTALL))
        text = re.sub(
            r"#\d+L?|0x[0-9a-f]+|(?<=calling o)\d+|(?<=stage )[\d.]+|(?<=TID )\d+|(?<=[Tt]ask )[\d.]+",
            "…",
            text,
        )
        condition = getattr(error, "getCondition", lambda: None)()
        frames = [
            frame.name
            for frame in traceback.extract_tb(error.__traceback__)
            if "spark_agent" in frame.filename
        ]
        return [type(error).__name__, str(condition), *text.splitlines(), f"frames of the agent: {frames}"]
    pytest.fail(f"no error, but {result!r}")


def plan(frame: DataFrame) -> str:
    """The plan that ran, the last one of those that AQE made."""
    frame.collect()
    text = frame._jdf.queryExecution().executedPlan().toString()
    return text.partition("== Initial Plan ==")[0]


def cogroups(t: Tables) -> DataFrame:
    both = by_tag(t.orders).cogroup(by_tag(t.labels))
    return both.applyInArrow(counted_groups, "tag string, n long, m long")


def without_aqe(make: Callable[[Tables], DataFrame]) -> Job:
    def job(t: Tables) -> str:
        with conf_of(t.spark, {"spark.sql.adaptive.enabled": "false"}):
            return plan(make(t))

    return job


def query(text: str, **conf: str) -> Job:
    def job(t: Tables) -> str:
        with conf_of(t.spark, {name.replace("_", "."): value for name, value in conf.items()}):
            return plan(t.spark.sql(text))

    return job


OFF = {"spark_sql_adaptive_enabled": "false"}
SORT_MERGE = {"spark_sql_autoBroadcastJoinThreshold": "-1"}
SUMS = "with sums as (select tag, sum(amount) s from orders group by tag) "

UNION_OF_AGGREGATES = (
    "select tag, count(*) n from orders group by tag "
    "union all select tag, sum(weight) from labels group by tag"
)

PLANS: dict[str, Job] = {
    "filter that is pushed down": query("select id, amount from orders where id > 9 and tag = 'x'"),
    "filter that a database looks at": lambda t: plan(in_database(t).where("id > 3").select("amount")),
    "filter on a partition": lambda t: plan(partitioned(t).where("tag = 'x' and id > 2")),
    "groupBy": query("select tag, sum(amount) from orders where id > 2 group by tag"),
    "groupBy without AQE": query("select tag, sum(amount) from orders where id > 2 group by tag", **OFF),
    "count distinct": query("select tag, count(distinct customer) from orders group by tag", **OFF),
    "broadcast join": query("select id, name from orders join customers on customer = key"),
    "broadcast join without AQE": query(
        "select id, name from orders join customers on customer = key", **OFF
    ),
    "sort-merge join": query("select id, name from orders join customers on customer = key", **SORT_MERGE),
    "sort-merge join without AQE": query(
        "select id, name from orders left join customers on customer = key", **SORT_MERGE, **OFF
    ),
    "exchange that is used again": query(
        SUMS + "select a.tag, b.tag from sums a join sums b on a.s = b.s", **SORT_MERGE
    ),
    "exchange that is used again without AQE": query(
        SUMS + "select a.tag, b.tag from sums a join sums b on a.s = b.s", **SORT_MERGE, **OFF
    ),
    "broadcast that is used again": query(
        "select /*+ broadcast(a), broadcast(b) */ id from orders join customers a on customer = a.key "
        "join customers b on amount = b.key"
    ),
    "subquery that is used again": query(
        "select amount - (select avg(amount) from orders), id - (select avg(amount) from orders) from orders",
        **OFF,
    ),
    "filter by a scalar subquery": query(
        "select id from orders where amount > (select avg(weight) from labels)", **OFF
    ),
    "filter by a scalar subquery with AQE": query(
        "select id from orders where amount > (select avg(weight) from labels)"
    ),
    "partitions by a scalar subquery": lambda t: plan(
        partitioned(t).where(F.expr("tag = (select max(tag) from labels)")).select("id")
    ),
    "filter by a subquery that differs each time": query(
        "select id from orders where amount > (select avg(weight) + rand(1) from labels)", **OFF
    ),
    "IN and EXISTS": query(
        "select id from orders where customer in (select key from customers) "
        "and exists (select 1 from labels label where label.tag = orders.tag)"
    ),
    "sort and limit": query("select id from orders order by amount limit 3"),
    "sort, limit and offset": query("select id from orders order by amount, id limit 9 offset 3"),
    "sort without AQE": query("select id from orders order by amount, id", **OFF),
    "window": query("select id, rank() over (partition by tag order by amount) from orders"),
    "explode": query("select id, item from baskets lateral view explode(items) as item"),
    "union": query("select id from orders union all select key from customers"),
    "union in one piece of generated code": query(
        "select id from orders where amount > 3 union all select key from customers where key > 1"
    ),
    "union of aggregates": query(UNION_OF_AGGREGATES),
    "union of aggregates without AQE": query(UNION_OF_AGGREGATES, **OFF),
    "union of joins": query(
        "select id from orders join customers on customer = key where amount > 3 "
        "union all select key from customers where key > 1"
    ),
    "union of subqueries": query(
        "select id from orders where amount > (select avg(weight) from labels) "
        "union all select key from customers where key > 1"
    ),
    "Python UDF": lambda t: plan(t.orders.select(F.udf(lambda n: n, "int")("id").alias("n")).where("n > 3")),
    "applyInArrow": lambda t: plan(by_tag(t.orders).applyInArrow(counted_group, COUNTED)),
    "applyInArrow without AQE": without_aqe(lambda t: by_tag(t.orders).applyInArrow(counted_group, COUNTED)),
    "applyInArrow over an aggregate": lambda t: plan(
        by_tag(t.orders.groupBy("tag", "id").count()).applyInArrow(counted_group, COUNTED)
    ),
    "applyInArrow over a repartition": lambda t: plan(
        by_tag(t.orders.repartition(5, "tag")).applyInArrow(counted_group, COUNTED)
    ),
    "cogroup": lambda t: plan(cogroups(t)),
    "cogroup without AQE": without_aqe(lambda t: cogroups(t)),
    "cogroup of which one side is shuffled": lambda t: plan(
        by_tag(t.orders.repartition(5, "tag"))
        .cogroup(by_tag(t.labels))
        .applyInArrow(counted_groups, "tag string, n long, m long")
    ),
    "join whose size is known while it runs": query(
        "select id, n from orders join "
        "(select key, count(*) n from customers where name = 'ann' group by key) on customer = key"
    ),
}


def in_database(t: Tables) -> DataFrame:
    """In the one that comes with Spark."""
    log = str(t.shop.folder.parent / "derby.log")
    jvm: Any = t.spark.sparkContext._jvm
    jvm.java.lang.System.setProperty("derby.stream.error.file", log)
    options = {"driver": "org.apache.derby.jdbc.EmbeddedDriver"}
    at = "jdbc:derby:memory:shop;create=true"
    t.orders.select("id", "amount").write.jdbc(at, "orders", "overwrite", options)
    return t.spark.read.jdbc(at, "orders", properties=options)


def partitioned(t: Tables) -> DataFrame:
    folder = t.shop.folder.parent / "by-tag"
    if not folder.exists():
        t.orders.write.partitionBy("tag").parquet(str(folder))
    return t.spark.read.parquet(str(folder))


#: Operators that the rewriting of a plan may add: columns are computed there, and nothing else. Of a scan by
#: columns whose reader takes columns, rows are made.
ADDED = {"Project", "Filter", "ColumnarToRow", "WholeStageCodegen", "InputAdapter"}


def operators(text: str) -> Counter[tuple[str, bool]]:
    """(operator, whether it is compiled with others into one function) of each line of a plan."""
    lines = re.findall(r"^[\s:+-]*(\*\(\d+\) |\* )?(\w+)", text, re.MULTILINE)
    return Counter(
        (name, bool(star)) for star, name in lines if name not in ADDED and name != "ReusedSubquery"
    )


def named(counts: Counter[tuple[str, bool]]) -> Counter[str]:
    return sum((Counter({name: number}) for (name, _), number in counts.items()), Counter())


def compiled(counts: Counter[tuple[str, bool]]) -> Counter[str]:
    return Counter({name: number for (name, is_compiled), number in counts.items() if is_compiled})


def pushed(text: str) -> list[str]:
    """What the scans are asked to filter by."""
    filters = re.findall(
        r"(?:PushedFilters|PartitionFilters|DataFilters): \[.*?\](?=, \w+:|$)", text, re.MULTILINE
    )
    return sorted(re.sub(r"#\d+L?", "", line) for line in filters)


Outcomes = Mapping[str, Any]


@pytest.fixture(scope="module")
def without(request: pytest.FixtureRequest, kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return outcomes(request, kafka, tmp_path_factory.mktemp("without"), lineage=False)


@pytest.fixture(scope="module")
def with_lineage(
    request: pytest.FixtureRequest, kafka: Any, tmp_path_factory: pytest.TempPathFactory
) -> Outcomes:
    return outcomes(request, kafka, tmp_path_factory.mktemp("with"), lineage=True)


def outcomes(request: pytest.FixtureRequest, kafka: Any, folder: Path, *, lineage: bool) -> Outcomes:
    """What the jobs give. The folder's name is none of it."""
    shop: Shop = make_shop(folder / "shop")

    def job(context: SparkContext) -> Outcomes:
        tables = Tables(SparkSession.builder.getOrCreate(), shop)
        for name in ("orders", "customers", "labels", "baskets"):
            getattr(tables, name).createOrReplaceTempView(name)
        results: dict[str, Any] = {
            name: error_of(lambda job=job: job(tables)) for name, job in selected(request, ERRORS).items()
        }
        for name, job in selected(request, {**ROWS, **PLANS}).items():
            try:
                results[name] = job(tables)
            except Exception as error:  # noqa: BLE001 - the test of this job reports it
                results[name] = error
        return results

    conf = {
        "spark_sql_shuffle_partitions": "3",
        "spark_sql_warehouse_dir": str(folder / "warehouse"),
        "spark_sql_session_timeZone": "UTC",
        "spark_sql_maxMetadataStringLength": "1000",  # else the filters of a scan end in three dots
    }
    results, seen = run_application(kafka.bootstrap_servers, folder / "store", job, lineage=lineage, **conf)
    if seen is not None:
        counters = seen.questions.application(seen.application_id).counters
        assert counters["queries_failed"] == 0  # what is not rewritten is the same for no reason
    return {name: without_folder(value, str(folder)) for name, value in results.items()}


def without_folder(value: Any, folder: str) -> Any:
    if isinstance(value, str):
        return value.replace(folder, "")
    return [without_folder(item, folder) for item in value] if isinstance(value, list) else value


def test_no_two_jobs_have_one_name() -> None:
    assert len({*ROWS, *ERRORS, *PLANS}) == len(ROWS) + len(ERRORS) + len(PLANS)


@pytest.mark.parametrize("name", sampled(ROWS, 20))
def test_a_job_gives_the_same_with_lineage(name: str, without: Outcomes, with_lineage: Outcomes) -> None:
    assert not isinstance(without[name], Exception), without[name]
    assert not isinstance(with_lineage[name], Exception), with_lineage[name]
    assert with_lineage[name] == without[name]


@pytest.mark.parametrize("name", sampled(ERRORS, 20))
def test_a_job_fails_as_it_fails_without_lineage(
    name: str, without: Outcomes, with_lineage: Outcomes
) -> None:
    assert with_lineage[name] == without[name]


@pytest.mark.parametrize("name", sampled(PLANS, 20))
def test_a_plan_stays_as_good_as_it_is(name: str, without: Outcomes, with_lineage: Outcomes) -> None:
    """The same operators, exchanges, reuse and steps of AQE, compiled as before; filters pushed as far.

    What goes from column to column without lineage goes from row to row with it, and may be compiled then.
    """
    assert isinstance(without[name], str), without[name]
    assert isinstance(with_lineage[name], str), with_lineage[name]
    assert "lineage_tap" in with_lineage[name], "it was not rewritten"
    before, after = operators(without[name]), operators(with_lineage[name])
    why = f"{with_lineage[name]}\n-- instead of --\n{without[name]}"
    assert named(after) == named(before), why
    assert not compiled(before) - compiled(after), why
    assert pushed(with_lineage[name]) == pushed(without[name])

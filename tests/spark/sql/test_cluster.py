"""DataFrames on a cluster: executors that die and tasks that fail leave no trace."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext, cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.spark import clusters
from tests.support.spark import relational as r
from tests.support.spark.application import Application
from tests.support.spark.clusters import CLUSTER, dies_at, fails_at
from tests.support.spark.dataframe_oracle import check_forward, check_sources, rows_of_sources, written
from tests.support.spark.shop import Shop, make_shop

Run = Callable[..., tuple[Any, Application]]

# A cluster is up to five JVMs beside the driver's, and a dead executor is waited for.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(2700)]

# The executors of a cluster cannot import the tests.
for module in (sys.modules[__name__], clusters):
    cloudpickle.register_pickle_by_value(module)


#: The id of an order in the middle of its file, which has a customer, and a name of customers.
A_ROW, A_GROUP = 16, "bo"


def unchanged(value: Any) -> Any:
    return value


def sums(s: Shop) -> r.Data:
    kept = r.where(s.orders, lambda o: o.amount > 3)
    joined = r.join(kept, s.customers, lambda o, c: r.equal(o.customer, c.key))
    return r.aggregate(
        r.select(joined, lambda p: (p[1].name, p[0].amount)),
        lambda row: (row[0],),
        lambda rows: (len(rows), sum(row[1] for row in rows)),
    )


def sums_in_spark(spark: SparkSession, shop: Shop, by_row: Any, by_group: Any) -> DataFrame:
    """by_row is called in the map stage, by_group in the stage behind the last shuffle.

    Within lambdas: PySpark would look at their annotations.
    """
    orders = spark.read.parquet(shop.path("orders")).where("amount > 3")
    customers = spark.read.parquet(shop.path("customers"))
    return (
        orders.withColumn("id", F.udf(lambda id: by_row(id), "int")("id"))
        .where("id >= 0")
        .join(customers.hint("merge"), F.expr("customer = key"))
        .groupBy("name")
        .agg(F.count("*").alias("n"), F.sum("amount").alias("s"))
        .withColumn("name", F.udf(lambda name: by_group(name), "string")("name"))
    )


def check(application: Application, output: Path, expected: r.Data) -> None:
    traced = {
        place: (row, application.trace(direction="backward", path=str(output / place[0]), row=place[1]))
        for place, row in written(output)
    }
    assert Counter(row for row, _ in traced.values()) == Counter(row for row, _ in expected)
    assert all(trace.exact and trace.complete for _, trace in traced.values())
    sources = {place: (repr(row), rows_of_sources(trace)) for place, (row, trace) in traced.items()}
    check_sources(sources.values(), expected)
    sinks = {trace.start_node for _, trace in traced.values()}
    check_forward(application, sinks, output, {place: rows for place, (_, rows) in sources.items()})


@pytest.mark.parametrize("stage", ["map", "reduce"])
def test_an_executor_that_is_killed_leaves_no_trace(stage: str, run: Run, tmp_path: Path) -> None:
    shop = make_shop(tmp_path / "shop")

    def job(context: SparkContext) -> None:
        spark = SparkSession.builder.getOrCreate()
        by_row = dies_at(A_ROW, tmp_path) if stage == "map" else unchanged
        by_group = dies_at(A_GROUP, tmp_path) if stage == "reduce" else unchanged
        sums_in_spark(spark, shop, by_row, by_group).write.parquet(str(tmp_path / "out"))

    _, application = run(job, **CLUSTER)
    assert (tmp_path / "killed").exists()
    check(application, tmp_path / "out", sums(shop))


def test_tasks_that_fail_once_in_each_stage_leave_no_trace(run: Run, tmp_path: Path) -> None:
    shop = make_shop(tmp_path / "shop")

    def job(context: SparkContext) -> None:
        spark = SparkSession.builder.getOrCreate()
        frame = sums_in_spark(spark, shop, fails_at(A_ROW), fails_at(A_GROUP))
        frame.write.parquet(str(tmp_path / "out"))

    _, application = run(job, **{**CLUSTER, "master": "local[2,4]"})
    check(application, tmp_path / "out", sums(shop))


def test_a_cache_that_is_lost_is_computed_again(run: Run, tmp_path: Path) -> None:
    shop = make_shop(tmp_path / "shop")

    def job(context: SparkContext) -> None:
        spark = SparkSession.builder.getOrCreate()
        kept = spark.read.parquet(shop.path("orders")).where("amount > 3").cache()
        kept.count()
        at = dies_at(A_ROW, tmp_path)
        dies = F.udf(lambda id: at(id), "int")
        kept.select(dies("id").alias("id"), "tag").repartition(2).write.parquet(str(tmp_path / "out"))
        kept.groupBy("tag").count().write.parquet(str(tmp_path / "groups"))

    _, application = run(job, **CLUSTER, spark_locality_wait="10s")
    assert (tmp_path / "killed").exists()
    rows = r.where(shop.orders, lambda o: o.amount > 3)
    check(application, tmp_path / "out", r.select(rows, lambda o: (o.id, o.tag)))
    check(application, tmp_path / "groups", r.aggregate(rows, lambda o: (o.tag,), lambda rows: (len(rows),)))


def test_a_function_over_groups_that_fails_once_leaves_no_trace(run: Run, tmp_path: Path) -> None:
    """Its executors have the agent from the driver."""
    shop, fails = make_shop(tmp_path / "shop"), fails_at(A_ROW)

    def counted(frame: Any) -> Any:
        for number in frame["id"].tolist():
            fails(number)
        return frame[["tag"]][:1].assign(n=len(frame))

    def job(context: SparkContext) -> None:
        orders = SparkSession.builder.getOrCreate().read.parquet(shop.path("orders"))
        frame = orders.groupBy("tag").applyInPandas(lambda frame: counted(frame), "tag string, n long")
        frame.write.parquet(str(tmp_path / "out"))

    _, application = run(job, **CLUSTER)
    expected = r.aggregate(shop.orders, lambda o: (o.tag,), lambda rows: (len(rows),))
    check(application, tmp_path / "out", expected)

"""Parts that stand in a plan twice and that Spark shuffles once: their random values are the same for all.

Rows say themselves which ids met in them, so what a trace gives is compared with that.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.lanes import sampled
from tests.support.spark.application import Application
from tests.support.spark.dataframe_oracle import rows_of_sources
from tests.support.spark.shop import make_shop

pytestmark = pytest.mark.thorough

Query = Callable[[SparkSession], DataFrame]


def of_names(spark: SparkSession) -> DataFrame:
    return spark.sql(
        "WITH x AS (SELECT id, int(rand(1) * 4) AS g FROM orders), "
        "y AS (SELECT g, collect_list(id) AS ids, int(rand(2) * 2) AS h FROM x GROUP BY g) "
        "SELECT array(x.id) AS one, y.ids AS two, z.ids AS three "
        "FROM x JOIN y ON x.g = y.g JOIN y AS z ON z.h = y.h JOIN x AS w ON w.id = x.id AND w.g = z.g"
    )


def of_repartitions(spark: SparkSession) -> DataFrame:
    rows = spark.table("orders").select("id", (F.rand(3) * 4).cast("int").alias("g"))
    groups = rows.groupBy("g").agg(F.collect_list("id").alias("one")).repartition(3)
    return groups.join(groups.withColumnRenamed("one", "two"), "g").select("one", "two")


CONFS: dict[str, dict[str, str]] = {
    "as it is": {},
    "without AQE": {"spark_sql_adaptive_enabled": "false"},
    "sort-merge joins": {"spark_sql_autoBroadcastJoinThreshold": "-1"},
}


@pytest.mark.parametrize("conf", sampled(CONFS, 3))
@pytest.mark.parametrize("query", [of_names, of_repartitions])
def test_what_met_in_a_shared_part_is_exact(
    query: Query, conf: str, run: Callable[..., tuple[Any, Application]], tmp_path: Path
) -> None:
    check(query, run, tmp_path, is_exact=True, **CONFS[conf])


@pytest.mark.parametrize("query", [of_names, of_repartitions])
def test_what_is_shuffled_for_each_reader_says_that_it_is_not_exact(
    query: Query, run: Callable[..., tuple[Any, Application]], tmp_path: Path
) -> None:
    check(query, run, tmp_path, is_exact=False, spark_sql_exchange_reuse="false")


def check(query: Query, run: Any, folder: Path, *, is_exact: bool, **conf: str) -> None:
    shop = make_shop(folder / "shop")

    def job(context: SparkContext) -> None:
        spark = SparkSession(context)
        spark.read.parquet(shop.path("orders")).createOrReplaceTempView("orders")
        query(spark).write.parquet(str(folder / "out"))

    _, application = run(job, **conf)
    places = {order.id: place for order, place in shop.orders}
    count = 0
    for part in sorted((folder / "out").glob("part-*")):
        for at, row in enumerate(pq.ParquetFile(part).read().to_pylist()):
            trace = application.trace(direction="backward", path=str(part), row=at)
            assert trace.exact == is_exact
            if is_exact:
                ids = {number for numbers in row.values() for number in numbers}
                assert rows_of_sources(trace) == frozenset().union(*(places[number] for number in ids))
            count += 1
    assert count > 2

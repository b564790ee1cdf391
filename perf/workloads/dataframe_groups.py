"""A function of pandas over groups: the days on which each product sold more than usual, and by how much.

    spark-submit perf/workloads/dataframe_groups.py PURCHASES OUTPUT

An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import sys

import pandas as pd  # type: ignore[import-untyped] # without stubs, as in the tests
from pyspark.sql import SparkSession


def busy_days(purchases: pd.DataFrame) -> pd.DataFrame:
    days = purchases.groupby(["product", "day"], as_index=False)["amount"].sum()
    usual = days["amount"].mean()
    return days[days["amount"] > usual].assign(more=lambda busy: busy["amount"] - usual)


def main(purchases: str, output: str) -> None:
    spark = SparkSession.builder.appName("Functions over groups").getOrCreate()
    columns = "number INT, customer STRING, product STRING, day STRING, amount DOUBLE"
    by_product = spark.read.schema(columns).csv(purchases).groupBy("product")
    busy = by_product.applyInPandas(busy_days, "product STRING, day STRING, amount DOUBLE, more DOUBLE")
    busy.write.csv(output)
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: spark-submit dataframe_groups.py PURCHASES OUTPUT")
    main(*sys.argv[1:])

"""An aggregate that needs all values at once: the 99th percentile of the readings by region.

    spark-submit perf/workloads/holistic.py READINGS OUTPUT rdd|sql

It is the reading that 99 of 100 do not exceed. Writes lines like `R00003,98`. One above 1,000 is wrong. An
ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from pyspark import SparkContext
from pyspark.sql import SparkSession

INPUT_PARTITIONS = 30
SCHEMA = "region STRING, station STRING, reading LONG"
QUERY = """
    SELECT region, sorted[CAST((99 * size(sorted) + 99) DIV 100 - 1 AS INT)] FROM (
        SELECT region, sort_array(collect_list(reading)) AS sorted FROM readings GROUP BY region
    )
"""


def percentile(readings: Iterable[int]) -> int:
    ordered = sorted(readings)
    return ordered[(99 * len(ordered) + 99) // 100 - 1]


def reading_by_region(line: str) -> tuple[str, int]:
    region, _, reading = line.split(",")
    return region, int(reading)


def with_rdds(readings: str, output: str) -> None:
    with SparkContext(appName="Percentiles") as sc:
        by_region = sc.textFile(readings, INPUT_PARTITIONS).map(reading_by_region)
        percentiles = by_region.groupByKey(INPUT_PARTITIONS).mapValues(percentile)
        percentiles.map(lambda row: f"{row[0]},{row[1]}").saveAsTextFile(output)


def in_sql(readings: str, output: str) -> None:
    spark = SparkSession.builder.appName("Percentiles in SQL").getOrCreate()
    spark.read.schema(SCHEMA).csv(readings).createOrReplaceTempView("readings")
    spark.sql(QUERY).write.csv(output)
    spark.stop()


FORMS = {"rdd": with_rdds, "sql": in_sql}

if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[3] not in FORMS:
        sys.exit("usage: spark-submit holistic.py READINGS OUTPUT rdd|sql")
    FORMS[sys.argv[3]](*sys.argv[1:3])

"""Aggregates of aggregates: the largest sum of a station's readings by region.

    spark-submit perf/workloads/nested.py READINGS OUTPUT rdd|sql

Writes lines like `R00003,1832`. One above 10,000 is wrong. An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import sys
from operator import add

from pyspark import SparkContext
from pyspark.sql import SparkSession

INPUT_PARTITIONS = 30
SCHEMA = "region STRING, station STRING, reading LONG"
QUERY = """
    SELECT region, max(total) FROM (
        SELECT region, station, sum(reading) AS total FROM readings GROUP BY region, station
    ) GROUP BY region
"""


def reading_by_station(line: str) -> tuple[tuple[str, str], int]:
    region, station, reading = line.split(",")
    return (region, station), int(reading)


def with_rdds(readings: str, output: str) -> None:
    with SparkContext(appName="Nested aggregates") as sc:
        sums = sc.textFile(readings, INPUT_PARTITIONS).map(reading_by_station).reduceByKey(add)
        largest = sums.map(lambda row: (row[0][0], row[1])).reduceByKey(max)
        largest.map(lambda row: f"{row[0]},{row[1]}").saveAsTextFile(output)


def in_sql(readings: str, output: str) -> None:
    spark = SparkSession.builder.appName("Nested aggregates in SQL").getOrCreate()
    spark.read.schema(SCHEMA).csv(readings).createOrReplaceTempView("readings")
    spark.sql(QUERY).write.csv(output)
    spark.stop()


FORMS = {"rdd": with_rdds, "sql": in_sql}

if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[3] not in FORMS:
        sys.exit("usage: spark-submit nested.py READINGS OUTPUT rdd|sql")
    FORMS[sys.argv[3]](*sys.argv[1:3])

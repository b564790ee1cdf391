"""Snow: the largest less the smallest fall by state and month, in mm. Some are in feet, some only say so.

    spark-submit perf/workloads/sift_weather.py SNOWFALLS OUTPUT rdd|sql

Writes lines like `T0003,01,287.0`. A difference above 1,000 is wrong. An ordinary Spark job: no lineage in
it.
"""

from __future__ import annotations

import sys

from pyspark import SparkContext
from pyspark.sql import SparkSession

INPUT_PARTITIONS = 30
MM_PER_FOOT = 304.8
SCHEMA = "station STRING, state STRING, month STRING, snow STRING"
QUERY = f"""
    SELECT state, month, max(mm) - min(mm) FROM (
        SELECT state, month, CAST(substr(snow, 1, length(snow) - 2) AS DOUBLE)
            * if(endswith(snow, 'ft'), CAST({MM_PER_FOOT} AS DOUBLE), CAST(1 AS DOUBLE)) AS mm
        FROM snowfalls
    ) GROUP BY state, month
"""


def fall(line: str) -> tuple[tuple[str, str], tuple[float, float]]:
    _, state, month, snow = line.split(",")
    mm = float(snow[:-2]) * (MM_PER_FOOT if snow.endswith("ft") else 1)
    return (state, month), (mm, mm)


def widest(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    return min(a[0], b[0]), max(a[1], b[1])


def with_rdds(snowfalls: str, output: str) -> None:
    with SparkContext(appName="Snow") as sc:
        ranges = sc.textFile(snowfalls, INPUT_PARTITIONS).map(fall).reduceByKey(widest)
        ranges.map(lambda row: f"{row[0][0]},{row[0][1]},{row[1][1] - row[1][0]}").saveAsTextFile(output)


def in_sql(snowfalls: str, output: str) -> None:
    spark = SparkSession.builder.appName("Snow in SQL").getOrCreate()
    spark.read.schema(SCHEMA).csv(snowfalls).createOrReplaceTempView("snowfalls")
    spark.sql(QUERY).write.csv(output)
    spark.stop()


FORMS = {"rdd": with_rdds, "sql": in_sql}

if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[3] not in FORMS:
        sys.exit("usage: spark-submit sift_weather.py SNOWFALLS OUTPUT rdd|sql")
    FORMS[sys.argv[3]](*sys.argv[1:3])

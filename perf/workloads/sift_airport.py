"""Short layovers: the minutes of those below 45 by airport and hour. One behind midnight counts as negative.

    spark-submit perf/workloads/sift_airport.py LAYOVERS OUTPUT rdd|sql

Writes lines like `A0003,23,-812`. A sum below zero is wrong. An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import sys
from operator import add

from pyspark import SparkContext
from pyspark.sql import SparkSession

INPUT_PARTITIONS = 30
SHORT = 45
SCHEMA = "passenger STRING, airport STRING, arrival STRING, departure STRING"
QUERY = f"""
    SELECT airport, substr(arrival, 1, 2) AS hour, sum(stay) FROM (
        SELECT airport, arrival,
            60 * (int(substr(departure, 1, 2)) - int(substr(arrival, 1, 2)))
            + int(substr(departure, 4, 2)) - int(substr(arrival, 4, 2)) AS stay
        FROM layovers
    ) WHERE stay < {SHORT} GROUP BY airport, hour
"""


def minutes(clock: str) -> int:
    hours, past = clock.split(":")
    return 60 * int(hours) + int(past)


def stay_by_hour(line: str) -> tuple[tuple[str, str], int]:
    _, airport, arrival, departure = line.split(",")
    return (airport, arrival[:2]), minutes(departure) - minutes(arrival)


def with_rdds(layovers: str, output: str) -> None:
    with SparkContext(appName="Layovers") as sc:
        stays = sc.textFile(layovers, INPUT_PARTITIONS).map(stay_by_hour)
        sums = stays.filter(lambda row: row[1] < SHORT).reduceByKey(add)
        sums.map(lambda row: f"{row[0][0]},{row[0][1]},{row[1]}").saveAsTextFile(output)


def in_sql(layovers: str, output: str) -> None:
    spark = SparkSession.builder.appName("Layovers in SQL").getOrCreate()
    spark.read.schema(SCHEMA).csv(layovers).createOrReplaceTempView("layovers")
    spark.sql(QUERY).write.csv(output)
    spark.stop()


FORMS = {"rdd": with_rdds, "sql": in_sql}

if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[3] not in FORMS:
        sys.exit("usage: spark-submit sift_airport.py LAYOVERS OUTPUT rdd|sql")
    FORMS[sys.argv[3]](*sys.argv[1:3])

"""The customers who bought nothing on a day. A purchase takes one away: not monotonic.

    spark-submit perf/workloads/subtract.py PURCHASES CUSTOMERS OUTPUT rdd|sql

Writes lines like `c00017,PT`. An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import sys

from pyspark import SparkContext
from pyspark.sql import SparkSession

INPUT_PARTITIONS = 30
DAY = "2024-01-15"
PURCHASES = "number INT, customer STRING, product STRING, day STRING, amount DECIMAL(9, 2)"
CUSTOMERS = "customer STRING, name STRING, country STRING"
QUERY = f"""
    SELECT customer, country FROM customers
    LEFT ANTI JOIN (SELECT * FROM purchases WHERE day = '{DAY}') USING (customer)
"""


def buyer(line: str) -> tuple[str, str]:
    fields = line.split(",")
    return fields[1], fields[3]


def country(line: str) -> tuple[str, str]:
    customer, _, place = line.split(",")
    return customer, place


def with_rdds(purchases: str, customers: str, output: str) -> None:
    with SparkContext(appName="Who bought nothing") as sc:
        buyers = sc.textFile(purchases, INPUT_PARTITIONS).map(buyer).filter(lambda row: row[1] == DAY)
        others = sc.textFile(customers).map(country).subtractByKey(buyers, INPUT_PARTITIONS)
        others.map(lambda row: f"{row[0]},{row[1]}").saveAsTextFile(output)


def in_sql(purchases: str, customers: str, output: str) -> None:
    spark = SparkSession.builder.appName("Who bought nothing, in SQL").getOrCreate()
    spark.read.schema(PURCHASES).csv(purchases).createOrReplaceTempView("purchases")
    spark.read.schema(CUSTOMERS).csv(customers).createOrReplaceTempView("customers")
    spark.sql(QUERY).write.csv(output)
    spark.stop()


FORMS = {"rdd": with_rdds, "sql": in_sql}

if __name__ == "__main__":
    if len(sys.argv) != 5 or sys.argv[4] not in FORMS:
        sys.exit("usage: spark-submit subtract.py PURCHASES CUSTOMERS OUTPUT rdd|sql")
    FORMS[sys.argv[4]](*sys.argv[1:4])

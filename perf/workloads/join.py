"""A join-heavy job: each purchase with the country of its customer.

    spark-submit perf/workloads/join.py PURCHASES CUSTOMERS OUTPUT

Writes lines like `c00017,AT,19.90`. Nearly all of its time goes into the shuffle and the join, and every
output row comes from one row of each file. An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import sys

from pyspark import SparkContext

INPUT_PARTITIONS = 30


def amount_by_customer(line: str) -> tuple[str, str]:
    fields = line.split(",")
    return fields[1], fields[4]


def country_by_customer(line: str) -> tuple[str, str]:
    fields = line.split(",")
    return fields[0], fields[2]


def main(purchases: str, customers: str, output: str) -> None:
    with SparkContext(appName="Join") as sc:
        amounts = sc.textFile(purchases, INPUT_PARTITIONS).map(amount_by_customer)
        countries = sc.textFile(customers).map(country_by_customer)
        joined = amounts.join(countries, INPUT_PARTITIONS)
        joined.map(lambda row: f"{row[0]},{row[1][1]},{row[1][0]}").saveAsTextFile(output)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: spark-submit join.py PURCHASES CUSTOMERS OUTPUT")
    main(*sys.argv[1:])

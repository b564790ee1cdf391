"""What each customer spent at the mean, saved as lines like `c00017,19.90`.

    spark-submit perf/workloads/means.py PURCHASES OUTPUT

An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import sys

from pyspark import SparkContext

INPUT_PARTITIONS = 30


def amount_by_customer(line: str) -> tuple[str, float]:
    fields = line.split(",")
    return fields[1], float(fields[4])


def main(purchases: str, output: str) -> None:
    with SparkContext(appName="Means") as sc:
        amounts = sc.textFile(purchases, INPUT_PARTITIONS).map(amount_by_customer)
        counted = amounts.mapValues(lambda amount: (amount, 1))
        sums = counted.reduceByKey(lambda a, b: (a[0] + b[0], a[1] + b[1]))
        sums.mapValues(lambda pair: pair[0] / pair[1]).map(
            lambda row: f"{row[0]},{row[1]:.2f}"
        ).saveAsTextFile(output)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: spark-submit means.py PURCHASES OUTPUT")
    main(*sys.argv[1:])

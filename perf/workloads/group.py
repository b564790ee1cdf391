"""A groupByKey-heavy job: how much each customer spent at the median, and in how many purchases.

    spark-submit perf/workloads/group.py PURCHASES OUTPUT

Writes lines like `c00017,112,19.90`. A median needs all values of a group, so nothing can be combined before
the shuffle. An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from pyspark import SparkContext

INPUT_PARTITIONS = 30


def amount_by_customer(line: str) -> tuple[str, float]:
    fields = line.split(",")
    return fields[1], float(fields[4])


def count_and_median(amounts: Iterable[float]) -> tuple[int, float]:
    """Of an even number the lower of the two in the middle."""
    ordered = sorted(amounts)
    return len(ordered), ordered[(len(ordered) - 1) // 2]


def main(purchases: str, output: str) -> None:
    with SparkContext(appName="Group") as sc:
        amounts = sc.textFile(purchases, INPUT_PARTITIONS).map(amount_by_customer)
        medians = amounts.groupByKey(INPUT_PARTITIONS).mapValues(count_and_median)
        medians.map(lambda row: f"{row[0]},{row[1][0]},{row[1][1]:.2f}").saveAsTextFile(output)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: spark-submit group.py PURCHASES OUTPUT")
    main(*sys.argv[1:])

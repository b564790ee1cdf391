"""Pairs of neighbouring words: how often each comes, saved as ('word1 word2', 42).

    spark-submit perf/workloads/bigrams.py INPUT OUTPUT

Most keys are rare, unlike those of WordCount. An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from operator import add

from pyspark import SparkContext

INPUT_PARTITIONS = 30


def bigrams(line: str) -> list[str]:
    words = line.split(" ")
    return [f"{first} {second}" for first, second in pairwise(words)]


def main(source: str, output: str) -> None:
    with SparkContext(appName="Bigrams") as sc:
        pairs = sc.textFile(source, INPUT_PARTITIONS).flatMap(bigrams).map(lambda pair: (pair, 1))
        pairs.reduceByKey(add).saveAsTextFile(output)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: spark-submit bigrams.py INPUT OUTPUT")
    main(*sys.argv[1:])

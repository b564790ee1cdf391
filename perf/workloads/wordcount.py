"""WordCount of the Lineage Master thesis: how often each word comes, saved as ('word1', 42).

    spark-submit perf/workloads/wordcount.py INPUT OUTPUT

Every input line flows into many outputs and a frequent word comes from most lines: the hard case for lineage.
An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import sys
from operator import add

from pyspark import SparkContext

INPUT_PARTITIONS = 30


def main(source: str, output: str) -> None:
    with SparkContext(appName="WordCount") as sc:
        words = sc.textFile(source, INPUT_PARTITIONS).flatMap(lambda line: line.split(" "))
        words.map(lambda word: (word, 1)).reduceByKey(add).saveAsTextFile(output)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: spark-submit wordcount.py INPUT OUTPUT")
    main(*sys.argv[1:])

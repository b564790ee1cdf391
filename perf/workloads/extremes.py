"""The longest line in which each word comes: its length and beginning, saved as ('word1', (84, 'word7 ...')).

    spark-submit perf/workloads/extremes.py INPUT OUTPUT

Every merge chooses one of two values: the case for winners. An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import sys

from pyspark import SparkContext

INPUT_PARTITIONS = 30


def main(source: str, output: str) -> None:
    with SparkContext(appName="Extremes") as sc:
        lines = sc.textFile(source, INPUT_PARTITIONS)
        words = lines.flatMap(lambda line: [(word, (len(line), line[:20])) for word in line.split(" ")])
        words.reduceByKey(max).saveAsTextFile(output)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: spark-submit extremes.py INPUT OUTPUT")
    main(*sys.argv[1:])

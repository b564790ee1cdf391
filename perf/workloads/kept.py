"""A job that keeps what it reads: its words are cached, put together with others, and read three times.

    spark-submit perf/workloads/kept.py INPUT OUTPUT

Writes lines like `word17,42`: how often each word comes at the beginning of a line or of a word of more than
five letters. An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import sys
from operator import add

from pyspark import SparkContext

INPUT_PARTITIONS = 30
TOGETHER = 10


def main(source: str, output: str) -> None:
    with SparkContext(appName="Kept") as sc:
        lines = sc.textFile(source, INPUT_PARTITIONS)
        words = lines.flatMap(lambda line: line.split(" ")).filter(lambda word: len(word) > 5).cache()
        words.count()
        first = lines.map(lambda line: line.split(" ", 1)[0])
        both = words.union(first).coalesce(TOGETHER).cache()
        both.filter(lambda word: word.endswith("1")).count()
        counts = both.map(lambda word: (word, 1)).reduceByKey(add, TOGETHER)
        counts.map(lambda row: f"{row[0]},{row[1]}").saveAsTextFile(output)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: spark-submit kept.py INPUT OUTPUT")
    main(*sys.argv[1:])

"""How many words come in one document only, by document. A document that has such a word, too, takes it away.

    spark-submit perf/workloads/unique_counts.py DOCUMENTS OUTPUT

Writes lines like `d3,17`. After figure 1 of Chothia et al. (PVLDB 9(12), 2016). An ordinary Spark job: no
lineage in it.
"""

from __future__ import annotations

import sys
from operator import add

from pyspark import SparkContext

PARTITIONS = 8


def words_of(line: str) -> list[tuple[str, str]]:
    document, text = line.split("\t")
    return [(word, document) for word in text.split(" ")]


def main(documents: str, output: str) -> None:
    with SparkContext(appName="Unique words by document") as sc:
        words = sc.textFile(documents, PARTITIONS).flatMap(words_of).distinct(PARTITIONS)
        unique = words.groupByKey(PARTITIONS).mapValues(list).filter(lambda row: len(row[1]) == 1)
        counts = unique.map(lambda row: (row[1][0], 1)).reduceByKey(add, PARTITIONS)
        counts.map(lambda row: f"{row[0]},{row[1]}").saveAsTextFile(output)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: spark-submit unique_counts.py DOCUMENTS OUTPUT")
    main(*sys.argv[1:])

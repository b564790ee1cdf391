"""Connected components: the smallest name that reaches each node, by label propagation of some turns.

    spark-submit perf/workloads/components.py INPUT OUTPUT [TURNS]

INPUT has lines `ONE<TAB>OTHER`. The labels are a loop variable: the case for digests. An ordinary Spark job:
no lineage in it.
"""

from __future__ import annotations

import sys

from pyspark import SparkContext

PARTITIONS = 8
TURNS = 8


def main(source: str, output: str, turns: int = TURNS) -> None:
    with SparkContext(appName="Components") as sc:
        lines = sc.textFile(source, PARTITIONS).map(lambda line: line.split("\t"))
        edges = lines.flatMap(lambda pair: [(pair[0], pair[1]), (pair[1], pair[0])]).cache()
        labels = edges.map(lambda edge: (edge[0], edge[0])).reduceByKey(min)
        for _ in range(turns):
            offers = edges.join(labels, PARTITIONS).map(lambda joined: joined[1])
            labels = labels.union(offers).reduceByKey(min, PARTITIONS)
        labels.saveAsTextFile(output)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: spark-submit components.py INPUT OUTPUT [TURNS]")
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))

"""Grep of the Lineage Master thesis: the lines that hold a term.

    spark-submit perf/workloads/grep.py INPUT OUTPUT [TERM]

The term is a substring, so word128 finds word1280 to word1289 too. An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import sys

from pyspark import SparkContext

INPUT_PARTITIONS = 30
# The thesis's choice for 500 MB: neither frequent nor rare.
DEFAULT_TERM = "word128"


def main(source: str, output: str, term: str = DEFAULT_TERM) -> None:
    with SparkContext(appName="Grep") as sc:
        lines = sc.textFile(source, INPUT_PARTITIONS)
        lines.filter(lambda line: term in line).saveAsTextFile(output)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: spark-submit grep.py INPUT OUTPUT [TERM]")
    main(*sys.argv[1:])

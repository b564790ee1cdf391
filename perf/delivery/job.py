"""An ordinary Spark job of three actions, for measuring what a failing broker costs it.

    python perf/delivery/job.py INPUT OUTPUT MARK

Makes the file MARK when its second action begins. It knows nothing of lineage.
"""

from __future__ import annotations

import operator
import sys
from pathlib import Path

from pyspark import SparkContext

SPLITS = 8


def main(source: str, output: str, mark: str) -> None:
    with SparkContext(appName="delivery") as sc:
        lines = sc.textFile(source, SPLITS)
        words = lines.flatMap(str.split).filter(lambda word: not word.endswith("7"))
        counts = words.map(lambda word: (word, 1)).reduceByKey(operator.add, SPLITS)
        counts.sortByKey(numPartitions=SPLITS).saveAsTextFile(f"{output}/counts")
        Path(mark).touch()
        firsts = lines.map(lambda line: (line.split()[0], line)).reduceByKey(max, SPLITS)
        firsts.join(counts, SPLITS).mapValues(repr).saveAsTextFile(f"{output}/longest")
        counts.map(lambda pair: (len(pair[0]), pair[1])).reduceByKey(max, SPLITS).saveAsTextFile(
            f"{output}/lengths"
        )


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: python job.py INPUT OUTPUT MARK")
    main(*sys.argv[1:])

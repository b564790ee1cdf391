"""One action of many tasks that do next to nothing: what a task itself costs.

    spark-submit perf/workloads/tiny_tasks.py TASKS OUTPUT

An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import sys

from pyspark import SparkContext


def main(tasks: str, output: str) -> None:
    with SparkContext(appName="TinyTasks") as sc:
        numbers = sc.parallelize(range(10 * int(tasks)), int(tasks))
        numbers.map(lambda number: number + 1).filter(lambda number: number % 7 == 0).saveAsTextFile(output)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: spark-submit tiny_tasks.py TASKS OUTPUT")
    main(*sys.argv[1:])

"""Many small actions, each timed: what an interactive user waits for.

    spark-submit perf/workloads/small_actions.py rdd|dataframe|write COUNT OUTPUT

Writes the milliseconds of each action as a list of JSON into the file OUTPUT. `write` writes files beside it.
An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession


def rdd_action(spark: SparkSession) -> Callable[[], object]:
    numbers = spark.sparkContext.parallelize(range(100), 2)
    return lambda: numbers.map(lambda number: number + 1).filter(lambda number: number % 2).count()


def dataframe_action(spark: SparkSession) -> Callable[[], object]:
    frame = spark.createDataFrame([(number, str(number)) for number in range(100)], "number int, text string")
    return lambda: frame.where("number % 2 = 0").select("text").collect()


def write_action(spark: SparkSession, folder: str) -> Callable[[], object]:
    frame = spark.createDataFrame([(number, str(number)) for number in range(100)], "number int, text string")
    return lambda: frame.where("number % 2 = 0").write.mode("overwrite").parquet(folder)


def main(kind: str, count: str, output: str) -> None:
    spark = SparkSession.builder.appName("SmallActions").getOrCreate()
    actions: dict[str, Callable[[SparkSession], Callable[[], object]]] = {
        "rdd": rdd_action,
        "dataframe": dataframe_action,
        "write": partial(write_action, folder=f"{output}.written"),
    }
    action = actions[kind](spark)
    durations_ms = []
    for _ in range(int(count)):
        began = time.perf_counter()
        action()
        durations_ms.append(1000 * (time.perf_counter() - began))
    Path(output).write_text(json.dumps(durations_ms))
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: spark-submit small_actions.py rdd|dataframe|write COUNT OUTPUT")
    main(*sys.argv[1:])

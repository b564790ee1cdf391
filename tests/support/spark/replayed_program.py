"""A program to be replayed: runs pipelines over two files, and saves what each gives.

    python replayed_program.py FOLDER [NAME ...]

Reads FOLDER/left.txt and FOLDER/right.txt, and writes FOLDER/out-NUMBER for each pipeline.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark import SparkConf, SparkContext

from tests.support.spark.more_rdd_pipelines import PIPELINES as MORE
from tests.support.spark.pipelines import Pipeline, pair, show
from tests.support.spark.rdd_pipelines import PIPELINES

ALL: dict[str, Pipeline] = {**PIPELINES, **MORE}
#: Which rows these give depends on where others stand, and on how many there are.
BY_PLACES = ("zip", "zip of shuffles", "zipWithIndex", "zipWithUniqueId")
PARTITIONS = {"left": 4, "right": 2}


def main(folder: Path, names: list[str]) -> None:
    context = SparkContext(conf=SparkConf().setMaster("local[2]").setAppName("replayed"))
    context.setLogLevel("OFF")
    context.setCheckpointDir(str(folder / "checkpoints"))
    left = context.textFile(str(folder / "left.txt"), PARTITIONS["left"])
    right = context.textFile(str(folder / "right.txt"), PARTITIONS["right"])
    datasets = [text.filter(lambda line: line != "").map(pair) for text in (left, right)]
    datasets[0].lines = left
    for name in names or ALL:
        in_spark, _ = ALL[name]
        in_spark(*datasets).map(show).saveAsTextFile(str(folder / f"out-{list(ALL).index(name)}"))
    context.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

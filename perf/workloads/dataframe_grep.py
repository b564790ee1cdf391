"""Grep as a DataFrame: the lines that hold a term.

    spark-submit perf/workloads/dataframe_grep.py INPUT OUTPUT

An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def main(source: str, output: str) -> None:
    spark = SparkSession.builder.appName("Grep of DataFrames").getOrCreate()
    spark.read.text(source).filter(F.col("value").contains("word13 ")).write.text(output)
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: spark-submit dataframe_grep.py INPUT OUTPUT")
    main(*sys.argv[1:])

"""WordCount as a DataFrame: how often each word comes.

    spark-submit perf/workloads/dataframe_wordcount.py INPUT OUTPUT

An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def main(source: str, output: str) -> None:
    spark = SparkSession.builder.appName("WordCount of DataFrames").getOrCreate()
    words = spark.read.text(source).select(F.explode(F.split("value", " ")).alias("word"))
    words.groupBy("word").count().write.csv(output)
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: spark-submit dataframe_wordcount.py INPUT OUTPUT")
    main(*sys.argv[1:])

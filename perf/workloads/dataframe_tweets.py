"""Tweets as a DataFrame of JSON: how many tweets of each language about movies praise.

    spark-submit perf/workloads/dataframe_tweets.py INPUT OUTPUT

An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

GOOD = "incredible|great|top-notch|masterpiece|perfect"


def main(source: str, output: str) -> None:
    spark = SparkSession.builder.appName("Tweets as a DataFrame").getOrCreate()
    tweets = spark.read.schema("text STRING, hashtags ARRAY<STRING>").json(source)
    about_movies = tweets.filter(F.array_contains("hashtags", "#movie"))
    praised = about_movies.groupBy(F.lower("text").rlike(GOOD).alias("praises"))
    praised.agg(F.count("*").alias("tweets"), F.max("text").alias("last")).write.csv(output)
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: spark-submit dataframe_tweets.py INPUT OUTPUT")
    main(*sys.argv[1:])

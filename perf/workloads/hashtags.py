"""How often each hashtag comes in a file of tweets, each line a JSON document, saved as ('#film', 42).

    spark-submit perf/workloads/hashtags.py INPUT OUTPUT

An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import json
import sys
from operator import add

from pyspark import SparkContext

INPUT_PARTITIONS = 30


def main(source: str, output: str) -> None:
    with SparkContext(appName="Hashtags") as sc:
        tweets = sc.textFile(source, INPUT_PARTITIONS).map(json.loads)
        tags = tweets.flatMap(lambda tweet: tweet["hashtags"]).map(lambda tag: (tag, 1))
        tags.reduceByKey(add).saveAsTextFile(output)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: spark-submit hashtags.py INPUT OUTPUT")
    main(*sys.argv[1:])

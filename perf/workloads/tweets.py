"""Tweets of the Lineage Master thesis: how many tweets praise and how many blame each movie.

    spark-submit perf/workloads/tweets.py INPUT OUTPUT

Writes lines like `matrix,70,21`: movie, tweets with a good adjective, tweets with a bad one. It has the bug
that the thesis finds with lineage: adjectives are searched as substrings, and "breakingbad" contains "bad",
so all of its tweets count as blame (as do those about "badboys"). An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import json
import sys

from pyspark import SparkContext

INPUT_PARTITIONS = 30
HASHTAGS = {"#movie", "#film", "#cinema", "#hollywood", "#blockbuster"}
MOVIES = (
    "badboys", "inception", "gangstar", "breakingbad", "matrix",
    "interstellar", "thegodfather", "pulpfiction", "fightclub", "thedarkknight",
)  # fmt: skip
GOOD = ("incredible", "great", "top-notch", "masterpiece", "perfect")
BAD = ("confusing", "overrated", "unsatisfied", "poor", "bad", "hard")


def first_movie(text: str) -> str | None:
    return next((movie for movie in MOVIES if movie in text), None)


def opinion(text: str) -> tuple[int, int]:
    return int(any(word in text for word in GOOD)), int(any(word in text for word in BAD))


def add(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    return a[0] + b[0], a[1] + b[1]


def main(source: str, output: str) -> None:
    with SparkContext(appName="Tweets") as sc:
        tweets = sc.textFile(source, INPUT_PARTITIONS).map(json.loads)
        about_movies = tweets.filter(lambda tweet: not HASHTAGS.isdisjoint(tweet["hashtags"]))
        texts = about_movies.map(lambda tweet: tweet["text"].lower())
        by_movie = texts.keyBy(first_movie).filter(lambda movie_text: movie_text[0] is not None)
        sums = by_movie.mapValues(opinion).reduceByKey(add)
        sums.map(lambda row: f"{row[0]},{row[1][0]},{row[1][1]}").saveAsTextFile(output)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: spark-submit tweets.py INPUT OUTPUT")
    main(*sys.argv[1:])

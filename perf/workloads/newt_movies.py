"""Newt's movies: three jobs in a chain, from ratings to the ages of those who like a genre.

    spark-submit perf/workloads/newt_movies.py RATINGS MOVIES USERS OUTPUT rdd|sql

| folder of OUTPUT | lines |
|---|---|
| `scores` | user, genre, the sum of the stars that the user gave to movies of the genre; tab-separated |
| `top` | user, the three genres with the highest scores, as `Drama,Crime,-`; tab-separated |
| `ages` | genre, decade of age, how many users of that age have the genre among their three |

The last job fails on a genre with a comma in it. Ordinary Spark jobs: no lineage in them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from operator import add

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

INPUT_PARTITIONS = 30
TOP = 3
#: The year of the report.
NOW = 2012

# -- with RDDs ----------------------------------------------------------------------------------------


def rating_by_movie(line: str) -> tuple[str, tuple[str, int]]:
    _, user, movie, stars = line.split(",")
    return movie, (user, int(stars))


def genres_by_movie(line: str) -> tuple[str, list[str]]:
    movie, _, genres = line.split("\t")
    return movie, genres.split("|")


def scores_of(row: tuple[str, tuple[tuple[str, int], list[str]]]) -> list[tuple[tuple[str, str], int]]:
    _, ((user, stars), genres) = row
    return [((user, genre), stars) for genre in genres]


def with_rdds(ratings: str, movies: str, users: str, output: str) -> None:
    with SparkContext(appName="Movies: scores") as sc:
        genres = sc.textFile(movies).map(genres_by_movie)
        rated = sc.textFile(ratings, INPUT_PARTITIONS).map(rating_by_movie).join(genres, INPUT_PARTITIONS)
        scores = rated.flatMap(scores_of).reduceByKey(add)
        scores.map(lambda row: f"{row[0][0]}\t{row[0][1]}\t{row[1]}").saveAsTextFile(f"{output}/scores")
    with SparkContext(appName="Movies: top genres") as sc:
        by_user = sc.textFile(f"{output}/scores").map(score_by_user).groupByKey(INPUT_PARTITIONS)
        top = by_user.mapValues(top_genres)
        top.map(lambda row: f"{row[0]}\t{','.join(row[1])}").saveAsTextFile(f"{output}/top")
    with SparkContext(appName="Movies: ages") as sc:
        top = sc.textFile(f"{output}/top").map(lambda line: tuple(line.split("\t")))
        decades = sc.textFile(users).map(decade_by_user)
        liked = top.join(decades, INPUT_PARTITIONS).flatMap(genres_by_decade)
        counts = liked.map(lambda pair: (pair, 1)).reduceByKey(add)
        counts.map(lambda row: f"{row[0][0]},{row[0][1]},{row[1]}").saveAsTextFile(f"{output}/ages")


def score_by_user(line: str) -> tuple[str, tuple[int, str]]:
    user, genre, score = line.split("\t")
    return user, (-int(score), genre)


def top_genres(scores: Iterable[tuple[int, str]]) -> list[str]:
    genres = [genre for _, genre in sorted(scores)[:TOP]]
    return genres + ["-"] * (TOP - len(genres))


def decade_by_user(line: str) -> tuple[str, int]:
    user, birthday = line.split(",")
    return user, (NOW - int(birthday[:4])) // 10 * 10


def three(genres: str) -> list[str]:
    first, second, third = genres.split(",")
    return [genre for genre in (first, second, third) if genre != "-"]


def genres_by_decade(row: tuple[str, tuple[str, int]]) -> list[tuple[str, int]]:
    _, (genres, decade) = row
    return [(genre, decade) for genre in three(genres)]


# -- in SQL -------------------------------------------------------------------------------------------

SCORES = r"""
    SELECT user, genre, sum(stars) AS score FROM (
        SELECT user, stars, explode(split(genres, '\\|')) AS genre FROM ratings JOIN movies USING (movie)
    ) GROUP BY user, genre
"""
TOP_GENRES = f"""
    SELECT user, concat_ws(',', concat(genres, array_repeat('-', {TOP} - size(genres)))) FROM (
        SELECT user, transform(
            slice(sort_array(collect_list(struct(-score AS score, genre))), 1, {TOP}), pair -> pair.genre
        ) AS genres
        FROM scores GROUP BY user
    )
"""
AGES = f"""
    SELECT genre, decade, count(*) FROM (
        SELECT explode(three(genres)) AS genre, ({NOW} - int(substr(birthday, 1, 4))) DIV 10 * 10 AS decade
        FROM top JOIN users USING (user)
    ) GROUP BY genre, decade
"""


def in_sql(ratings: str, movies: str, users: str, output: str) -> None:
    spark = SparkSession.builder.appName("Movies in SQL: scores").getOrCreate()
    read(spark, "ratings", ratings, "number INT, user STRING, movie STRING, stars INT", ",")
    read(spark, "movies", movies, "movie STRING, title STRING, genres STRING", "\t")
    spark.sql(SCORES).write.csv(f"{output}/scores", sep="\t")
    spark.stop()
    spark = SparkSession.builder.appName("Movies in SQL: top genres").getOrCreate()
    read(spark, "scores", f"{output}/scores", "user STRING, genre STRING, score LONG", "\t")
    spark.sql(TOP_GENRES).write.csv(f"{output}/top", sep="\t")
    spark.stop()
    spark = SparkSession.builder.appName("Movies in SQL: ages").getOrCreate()
    read(spark, "top", f"{output}/top", "user STRING, genres STRING", "\t")
    read(spark, "users", users, "user STRING, birthday STRING", ",")
    spark.udf.register("three", F.udf(three, "array<string>"))
    spark.sql(AGES).write.csv(f"{output}/ages")
    spark.stop()


def read(spark: SparkSession, name: str, path: str, schema: str, separator: str) -> None:
    spark.read.schema(schema).option("sep", separator).csv(path).createOrReplaceTempView(name)


FORMS = {"rdd": with_rdds, "sql": in_sql}

if __name__ == "__main__":
    if len(sys.argv) != 6 or sys.argv[5] not in FORMS:
        sys.exit("usage: spark-submit newt_movies.py RATINGS MOVIES USERS OUTPUT rdd|sql")
    FORMS[sys.argv[5]](*sys.argv[1:5])

"""The ten commonest words. A line with another word may take one away: not monotonic.

    spark-submit perf/workloads/top_k.py WORDS OUTPUT rdd|sql

Writes lines like `word1,42`, the commonest first, equal ones by name. An ordinary Spark job: no lineage in
it.
"""

from __future__ import annotations

import sys
from operator import add

from pyspark import SparkContext
from pyspark.sql import SparkSession

INPUT_PARTITIONS = 30
TOP = 10
SCHEMA = "line STRING"
QUERY = f"""
    SELECT word, count(*) AS times FROM (SELECT explode(split(line, ' ')) AS word FROM lines)
    GROUP BY word ORDER BY times DESC, word LIMIT {TOP}
"""


def with_rdds(words: str, output: str) -> None:
    with SparkContext(appName="Top words") as sc:
        lines = sc.textFile(words, INPUT_PARTITIONS)
        counts = lines.flatMap(lambda line: line.split(" ")).map(lambda word: (word, 1)).reduceByKey(add)
        ordered = counts.sortBy(lambda row: (-row[1], row[0])).zipWithIndex()
        top = ordered.filter(lambda row: row[1] < TOP)
        top.map(lambda row: f"{row[0][0]},{row[0][1]}").saveAsTextFile(output)


def in_sql(words: str, output: str) -> None:
    spark = SparkSession.builder.appName("Top words in SQL").getOrCreate()
    spark.read.schema(SCHEMA).text(words).createOrReplaceTempView("lines")
    spark.sql(QUERY).write.csv(output)
    spark.stop()


FORMS = {"rdd": with_rdds, "sql": in_sql}

if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[3] not in FORMS:
        sys.exit("usage: spark-submit top_k.py WORDS OUTPUT rdd|sql")
    FORMS[sys.argv[3]](*sys.argv[1:3])

"""The words that come in one document only. A line of another document may take a word away: not monotonic.

    spark-submit perf/workloads/unique_words.py DOCUMENTS OUTPUT rdd|sql

Writes lines like `only17,d3`. An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import sys

from pyspark import SparkContext
from pyspark.sql import SparkSession

INPUT_PARTITIONS = 30
SCHEMA = "document STRING, text STRING"
QUERY = """
    SELECT word, min(document) FROM (
        SELECT document, explode(split(text, ' ')) AS word FROM documents
    ) GROUP BY word HAVING count(DISTINCT document) = 1
"""


def words_of(line: str) -> list[tuple[str, str]]:
    document, text = line.split("\t")
    return [(word, document) for word in text.split(" ")]


def with_rdds(documents: str, output: str) -> None:
    with SparkContext(appName="Unique words") as sc:
        words = sc.textFile(documents, INPUT_PARTITIONS).flatMap(words_of)
        by_word = words.groupByKey(INPUT_PARTITIONS).mapValues(set)
        unique = by_word.filter(lambda row: len(row[1]) == 1)
        unique.map(lambda row: f"{row[0]},{min(row[1])}").saveAsTextFile(output)


def in_sql(documents: str, output: str) -> None:
    spark = SparkSession.builder.appName("Unique words in SQL").getOrCreate()
    spark.read.schema(SCHEMA).option("sep", "\t").csv(documents).createOrReplaceTempView("documents")
    spark.sql(QUERY).write.csv(output)
    spark.stop()


FORMS = {"rdd": with_rdds, "sql": in_sql}

if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[3] not in FORMS:
        sys.exit("usage: spark-submit unique_words.py DOCUMENTS OUTPUT rdd|sql")
    FORMS[sys.argv[3]](*sys.argv[1:3])

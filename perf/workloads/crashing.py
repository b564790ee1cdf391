"""Jobs that fail on lines whose value is no number, each in another operation.

    spark-submit perf/workloads/crashing.py BROKEN OUTPUT OPERATION

OPERATION is one of `OPERATIONS` (RDDs) or `QUERIES` (SQL). Without wrong lines it writes values, or sums of
them by station. An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import add
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType

INPUT_PARTITIONS = 30
SCHEMA = "number STRING, station STRING, value STRING"


def value(line: str) -> int:
    return int(line.rsplit(",", 1)[1])


def station(line: str) -> tuple[str, str]:
    _, name, text = line.split(",")
    return name, text


def values(lines: Iterable[str]) -> Iterator[int]:
    for line in lines:
        yield value(line)


def total(texts: Iterable[str]) -> int:
    return sum(map(int, texts))


#: Each takes an RDD of lines, and calls `int` in the operation that it is named after.
OPERATIONS: Mapping[str, Callable[[Any], Any]] = {
    "map": lambda lines: lines.map(value),
    "filter": lambda lines: lines.filter(lambda line: value(line) > 0),
    "flatMap": lambda lines: lines.flatMap(lambda line: [value(line)]),
    "mapPartitions": lambda lines: lines.mapPartitions(values),
    "keyBy": lambda lines: lines.keyBy(value),
    "mapValues": lambda lines: lines.map(station).mapValues(int).reduceByKey(add),
    "flatMapValues": lambda lines: lines.map(station).flatMapValues(lambda text: [int(text)]),
    "reduceByKey": lambda lines: lines.map(station).reduceByKey(lambda a, b: str(int(a) + int(b))),
    "aggregateByKey": lambda lines: lines.map(station).aggregateByKey(0, lambda a, b: a + int(b), add),
    "groupByKey": lambda lines: lines.map(station).groupByKey().mapValues(total),
    "join": lambda lines: (
        lines.map(station).join(lines.context.parallelize([("S01", 1)])).mapValues(lambda pair: int(pair[0]))
    ),
    "sortBy": lambda lines: lines.sortBy(value),
    "partitionBy": lambda lines: lines.map(lambda line: (line, 1)).partitionBy(4, value),
    "distinct": lambda lines: lines.distinct().map(value),
}
_cast = F.udf(lambda text: int(text), IntegerType())
#: Each takes a DataFrame of the lines' columns.
QUERIES: Mapping[str, Callable[[Any], Any]] = {
    "sql-cast": lambda frame: frame.selectExpr("number", "CAST(value AS INT) AS value"),
    "sql-filter": lambda frame: frame.where("CAST(value AS INT) > 0"),
    "sql-sum": lambda frame: frame.groupBy("station").agg(F.expr("sum(CAST(value AS INT)) AS total")),
    "sql-udf": lambda frame: frame.select("number", _cast("value").alias("value")),
}


def main(source: str, output: str, operation: str) -> None:
    if operation in OPERATIONS:
        with SparkContext(appName=f"Crashing {operation}") as sc:
            OPERATIONS[operation](sc.textFile(source, INPUT_PARTITIONS)).saveAsTextFile(output)
        return
    builder = SparkSession.builder.appName(f"Crashing {operation}")
    spark = builder.config("spark.sql.ansi.enabled", "true").getOrCreate()
    try:
        QUERIES[operation](spark.read.schema(SCHEMA).csv(source)).write.csv(output)
    finally:
        spark.stop()


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[3] not in (*OPERATIONS, *QUERIES):
        sys.exit(f"usage: spark-submit crashing.py BROKEN OUTPUT {'|'.join((*OPERATIONS, *QUERIES))}")
    main(*sys.argv[1:])

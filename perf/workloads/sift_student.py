"""The mean age of the students by school and grade. Some have the year of their birth as their age.

    spark-submit perf/workloads/sift_student.py STUDENTS OUTPUT rdd|sql

Writes lines like `H0003,9,16.04`. A mean above 20 is wrong. An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import sys

from pyspark import SparkContext
from pyspark.sql import SparkSession

INPUT_PARTITIONS = 30
SCHEMA = "name STRING, school STRING, grade STRING, age INT"
QUERY = "SELECT school, grade, avg(age) FROM students GROUP BY school, grade"


def age_by_grade(line: str) -> tuple[tuple[str, str], tuple[int, int]]:
    _, school, grade, age = line.split(",")
    return (school, grade), (int(age), 1)


def with_rdds(students: str, output: str) -> None:
    with SparkContext(appName="Students") as sc:
        ages = sc.textFile(students, INPUT_PARTITIONS).map(age_by_grade)
        sums = ages.reduceByKey(lambda a, b: (a[0] + b[0], a[1] + b[1]))
        means = sums.mapValues(lambda total: total[0] / total[1])
        means.map(lambda row: f"{row[0][0]},{row[0][1]},{row[1]}").saveAsTextFile(output)


def in_sql(students: str, output: str) -> None:
    spark = SparkSession.builder.appName("Students in SQL").getOrCreate()
    spark.read.schema(SCHEMA).csv(students).createOrReplaceTempView("students")
    spark.sql(QUERY).write.csv(output)
    spark.stop()


FORMS = {"rdd": with_rdds, "sql": in_sql}

if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[3] not in FORMS:
        sys.exit("usage: spark-submit sift_student.py STUDENTS OUTPUT rdd|sql")
    FORMS[sys.argv[3]](*sys.argv[1:3])

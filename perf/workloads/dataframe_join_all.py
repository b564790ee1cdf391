"""A join of three tables that keeps all rows: each purchase with its customer and with the day's last one.

    spark-submit perf/workloads/dataframe_join_all.py PURCHASES CUSTOMERS OUTPUT

Every output row comes from three rows. An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

QUERY = """
    SELECT p.number, p.amount, c.country, b.name
    FROM purchases p JOIN customers c ON p.customer = c.customer
    JOIN customers b ON concat('c', lpad(CAST((p.number * 7) % 10000 AS STRING), 5, '0')) = b.customer
"""


def main(purchases: str, customers: str, output: str) -> None:
    spark = SparkSession.builder.appName("Join of three tables").getOrCreate()
    columns = "number INT, customer STRING, product STRING, day STRING, amount DECIMAL(9, 2)"
    spark.read.schema(columns).csv(purchases).createOrReplaceTempView("purchases")
    columns = "customer STRING, name STRING, country STRING"
    spark.read.schema(columns).csv(customers).createOrReplaceTempView("customers")
    spark.sql(QUERY).write.csv(output)
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: spark-submit dataframe_join_all.py PURCHASES CUSTOMERS OUTPUT")
    main(*sys.argv[1:])

"""The join of dataframe_join.py over tables of Delta Lake, into another one.

    spark-submit --jars DELTA... perf/workloads/delta_join.py PURCHASES CUSTOMERS OUTPUT

An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

QUERY = """
    SELECT country, product, sum(amount) AS spent, count(*) AS purchases
    FROM purchases JOIN customers USING (customer)
    WHERE day < '2024-07-01' GROUP BY country, product
"""


def main(purchases: str, customers: str, output: str) -> None:
    spark = SparkSession.builder.appName("Join and aggregate of Delta tables").getOrCreate()
    spark.read.format("delta").load(purchases).createOrReplaceTempView("purchases")
    spark.read.format("delta").load(customers).createOrReplaceTempView("customers")
    spark.sql(QUERY).write.format("delta").save(output)
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: spark-submit delta_join.py PURCHASES CUSTOMERS OUTPUT")
    main(*sys.argv[1:])

"""A join and an aggregate in SQL, as query 3 of TPC-H has them: what each country spent on each product.

    spark-submit perf/workloads/dataframe_join.py PURCHASES CUSTOMERS OUTPUT

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
    spark = SparkSession.builder.appName("Join and aggregate in SQL").getOrCreate()
    columns = "number INT, customer STRING, product STRING, day STRING, amount DECIMAL(9, 2)"
    spark.read.schema(columns).csv(purchases).createOrReplaceTempView("purchases")
    columns = "customer STRING, name STRING, country STRING"
    spark.read.schema(columns).csv(customers).createOrReplaceTempView("customers")
    spark.sql(QUERY).write.csv(output)
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: spark-submit dataframe_join.py PURCHASES CUSTOMERS OUTPUT")
    main(*sys.argv[1:])

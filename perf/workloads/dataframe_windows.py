"""Windows over purchases by customer, in the order of their amounts. Saved as CSV.

    spark-submit perf/workloads/dataframe_windows.py PURCHASES OUTPUT lag|running|moving|rank|range

An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

SCHEMA = "id INT, customer STRING, product STRING, day STRING, amount DECIMAL(9, 2)"
BY = "PARTITION BY customer ORDER BY"
VALUES = {
    "lag": f"amount - lag(amount) OVER ({BY} amount, id)",
    "running": f"sum(amount) OVER ({BY} amount)",
    "moving": f"avg(amount) OVER ({BY} amount, id ROWS BETWEEN 6 PRECEDING AND CURRENT ROW)",
    "rank": f"rank() OVER ({BY} amount)",
    "range": f"count(*) OVER ({BY} amount RANGE BETWEEN 5 PRECEDING AND 5 FOLLOWING)",
}


def main(purchases: str, output: str, kind: str) -> None:
    spark = SparkSession.builder.appName("Windows").getOrCreate()
    spark.read.schema(SCHEMA).csv(purchases).createOrReplaceTempView("purchases")
    spark.sql(f"SELECT id, customer, {VALUES[kind]} FROM purchases").write.csv(output)
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[3] not in VALUES:
        sys.exit(f"usage: spark-submit dataframe_windows.py PURCHASES OUTPUT {'|'.join(VALUES)}")
    main(*sys.argv[1:])

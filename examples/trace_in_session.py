"""Sums of paid orders by shop, and in the same session: which orders made a sum, and which of them is wrong?

    spark-submit --conf spark.lineage.enabled=true examples/trace_in_session.py ORDERS_CSV SUMS_FOLDER SHOP

ORDERS_CSV has the columns shop, state, amount and a header line. `lineage consume` and `lineage serve` must
run. docs/tracing-in-spark.md goes through it.
"""

from __future__ import annotations

import operator
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_agent import trace


def main(orders_csv: str, sums_folder: str, shop: str) -> None:
    spark = SparkSession.builder.appName("Sums by shop").getOrCreate()
    lines = spark.sparkContext.textFile(orders_csv).filter(lambda line: line != "shop,state,amount")
    paid = lines.map(lambda line: line.split(",")).filter(lambda order: order[1] == "paid")
    sums = paid.map(lambda order: (order[0], int(order[2]))).reduceByKey(operator.add)
    sums.map(lambda total: f"{total[0]},{total[1]}").saveAsTextFile(sums_folder)

    rows = trace(sums).key(shop).go_back_all().rows()  # path, row, line, text: a DataFrame like any other
    amounts = rows.withColumn("amount", F.split("text", ",")[2].cast("int"))
    print(f"{shop} has {amounts.count()} paid orders; the largest of them:")
    for row in amounts.orderBy(F.desc("amount")).limit(1).collect():
        print(f"line {row.line}: {row.text}")

        print("and went into:")
        trace(orders_csv).row(row.row).go_next_all().show()
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: trace_in_session.py ORDERS_CSV SUMS_FOLDER SHOP")
    main(*sys.argv[1:])

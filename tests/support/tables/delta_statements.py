"""A job of Delta Lake's statements, unmodified: `python delta_statements.py FOLDER TABLE_PROPERTY=VALUE ...`.

Reads FOLDER/old.csv, more.csv and updates.csv, and writes the table FOLDER/table and the folder FOLDER/out.
`partitioned` among the properties partitions the table by `p`.
"""

import sys

from pyspark.sql import SparkSession

folder, words = sys.argv[1], sys.argv[2:]
properties = dict(word.split("=") for word in words if "=" in word)
columns = "id BIGINT, name STRING, v INT, p STRING"
session = SparkSession.builder.appName("statements").getOrCreate()
session.sparkContext.setLogLevel("ERROR")
for name, value in properties.items():
    session.conf.set(f"spark.databricks.delta.properties.defaults.{name}", value)

old = session.read.schema(columns).csv(f"{folder}/old.csv").repartition(3)
writer = old.write.format("delta")
(writer.partitionBy("p") if "partitioned" in words else writer).save(f"{folder}/table")
more = session.read.schema(columns).csv(f"{folder}/more.csv")
more.where("v >= 0").write.format("delta").mode("append").save(f"{folder}/table")
session.read.schema(columns).csv(f"{folder}/updates.csv").createOrReplaceTempView("updates")

table = f"delta.`{folder}/table`"
for statement in (
    f"UPDATE {table} SET v = v + 1000 WHERE id % 10 = 3",
    f"DELETE FROM {table} WHERE id % 10 = 7",
    f"MERGE INTO {table} t USING updates u ON t.id = u.id "
    "WHEN MATCHED AND u.v < 0 THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET name = u.name, v = u.v "
    "WHEN NOT MATCHED AND u.v >= 0 THEN INSERT *",
    f"INSERT INTO {table} SELECT id + 10000, name, v, p FROM updates WHERE id % 4 = 0",
    f"OPTIMIZE {table}",
):
    session.sql(statement)
session.read.format("delta").load(f"{folder}/table").orderBy("id").write.csv(f"{folder}/out")
session.stop()

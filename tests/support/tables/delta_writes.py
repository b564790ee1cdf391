"""A job that writes tables of Delta Lake in all the ways that Spark has: `python delta_writes.py FOLDER`.

FOLDER/rows.csv has the rows (id, p). Each way writes a table of its own, FOLDER/tables/WAY.
"""

import sys
from collections.abc import Callable

from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql.functions import col

folder = sys.argv[1]
session = SparkSession.builder.appName("writes").getOrCreate()
session.sparkContext.setLogLevel("ERROR")
session.sql(f"CREATE DATABASE lake LOCATION '{folder}/tables'")
rows = session.read.schema("id INT, p INT").csv(f"{folder}/rows.csv")
rows.createOrReplaceTempView("rows")
first, second = rows.where("p = 1"), rows.where("p = 2")


def write_again(way: str, write: Callable[[DataFrame, str], object]) -> None:
    """A table of the rows with p = 1, and then those with p = 2 by `write`."""
    first.write.format("delta").partitionBy("p").saveAsTable(f"lake.{way}")
    write(second, f"lake.{way}")


def delta(frame: DataFrame, mode: str, **options: str) -> DataFrameWriter:
    return frame.write.format("delta").mode(mode).options(**options)


write_again("append", lambda frame, table: delta(frame, "append").saveAsTable(table))
write_again("overwrite", lambda frame, table: delta(frame, "overwrite").saveAsTable(table))
write_again("insert_into", lambda frame, table: frame.write.insertInto(table))
write_again("insert_overwrite", lambda frame, table: frame.write.insertInto(table, overwrite=True))
write_again(
    "replace_where",
    lambda frame, table: delta(frame, "overwrite", replaceWhere="p = 2").saveAsTable(table),
)
write_again(
    "dynamic",
    lambda frame, table: delta(frame, "overwrite", partitionOverwriteMode="dynamic").saveAsTable(table),
)
write_again("v2_append", lambda frame, table: frame.writeTo(table).append())
write_again("v2_overwrite", lambda frame, table: frame.writeTo(table).overwrite(col("p") == 2))
write_again("v2_partitions", lambda frame, table: frame.writeTo(table).overwritePartitions())
write_again("v2_replace", lambda frame, table: frame.writeTo(table).using("delta").replace())
write_again(
    "v2_create_or_replace", lambda frame, table: frame.writeTo(table).using("delta").createOrReplace()
)
write_again("by_path", lambda frame, table: delta(frame, "append").save(f"{folder}/tables/by_path"))
write_again("nothing", lambda frame, table: delta(frame.where("p = 3"), "append").saveAsTable(table))
write_again("no_rows", lambda frame, table: delta(frame.limit(0), "append").saveAsTable(table))
write_again("sql_values", lambda _, table: session.sql(f"INSERT INTO {table} VALUES (70, 2), (71, 3)"))
write_again(
    "sql_value_with_columns", lambda _, table: session.sql(f"INSERT INTO {table} (p, id) SELECT 2, 70")
)
write_again(
    "sql_replace_where",
    lambda _, table: session.sql(f"INSERT INTO {table} REPLACE WHERE p = 2 SELECT * FROM rows WHERE p = 2"),
)
write_again(
    "local_rows",
    lambda _, table: delta(
        session.createDataFrame([(70, 2), (71, 3)], "id INT, p INT"), "append"
    ).saveAsTable(table),
)
write_again(
    "range",
    lambda _, table: delta(session.range(70, 72).selectExpr("int(id) id", "2 AS p"), "append").saveAsTable(
        table
    ),
)
session.sql("CREATE TABLE lake.ctas USING delta AS SELECT * FROM rows")
session.sql("CREATE TABLE lake.ctas_of_values USING delta AS SELECT 70 AS id, 2 AS p")
session.sql("CREATE OR REPLACE TABLE lake.ctas_of_values USING delta AS SELECT 71 AS id, 2 AS p")
rows.writeTo("lake.v2_create").using("delta").create()
first.write.format("delta").mode("ignore").saveAsTable("lake.ctas")
for table in session.sql("SHOW TABLES IN lake").where("NOT isTemporary").collect():
    written = session.table(f"lake.{table.tableName}").orderBy("id").selectExpr("id", "p").coalesce(1)
    written.write.csv(f"{folder}/out/{table.tableName}")
session.stop()

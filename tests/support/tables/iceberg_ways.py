"""A job that writes tables of Iceberg in all the ways that Spark has: `python iceberg_ways.py FOLDER`.

FOLDER/rows.csv has the rows (id, p). Each way writes a table of its own, ice.lake.WAY, and the rows that it
then has go to FOLDER/out/WAY.
"""

import sys
from collections.abc import Callable

from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql.functions import col

folder = sys.argv[1]
session = SparkSession.builder.appName("ways").getOrCreate()
session.sparkContext.setLogLevel("ERROR")
session.sql("CREATE NAMESPACE ice.lake")
rows = session.read.schema("id INT, p INT").csv(f"{folder}/rows.csv")
rows.createOrReplaceTempView("rows")
first, second = rows.where("p = 1"), rows.where("p = 2")


def write_again(way: str, write: Callable[[DataFrame, str], object]) -> None:
    """A table of the rows with p = 1, and then those with p = 2 by `write`."""
    first.writeTo(f"ice.lake.{way}").partitionedBy(col("p")).create()
    write(second, f"ice.lake.{way}")


def iceberg(frame: DataFrame, mode: str, **options: str) -> DataFrameWriter:
    return frame.write.format("iceberg").mode(mode).options(**options)


write_again("append", lambda frame, table: frame.writeTo(table).append())
write_again("overwrite", lambda frame, table: frame.writeTo(table).overwrite(col("p") == 2))
write_again("overwrite_all", lambda frame, table: frame.writeTo(table).overwrite(col("p") >= 0))
write_again("partitions", lambda frame, table: frame.writeTo(table).overwritePartitions())
write_again("replace", lambda frame, table: frame.writeTo(table).using("iceberg").replace())
write_again("replace_or_create", lambda frame, table: frame.writeTo(table).createOrReplace())
write_again("v1_append", lambda frame, table: iceberg(frame, "append").saveAsTable(table))
write_again("v1_overwrite", lambda frame, table: iceberg(frame, "overwrite").saveAsTable(table))
write_again("v1_save", lambda frame, table: iceberg(frame, "append").save(table))
write_again("insert_into", lambda frame, table: frame.write.insertInto(table))
write_again("insert_overwrite", lambda frame, table: frame.write.insertInto(table, overwrite=True))
write_again("nothing", lambda frame, table: frame.where("p = 3").writeTo(table).append())
write_again("no_rows", lambda frame, table: frame.limit(0).writeTo(table).append())
write_again("sql_values", lambda _, table: session.sql(f"INSERT INTO {table} VALUES (70, 2), (71, 3)"))
write_again(
    "sql_value_with_columns", lambda _, table: session.sql(f"INSERT INTO {table} (p, id) SELECT 2, 70")
)
write_again(
    "sql_by_name",
    lambda _, table: session.sql(f"INSERT INTO {table} BY NAME SELECT p, id FROM rows WHERE p = 2"),
)
write_again(
    "sql_overwrite",
    lambda _, table: session.sql(
        f"INSERT OVERWRITE {table} PARTITION (p = 2) SELECT id FROM rows WHERE p = 2"
    ),
)
write_again(
    "sql_replace_where",
    lambda _, table: session.sql(f"INSERT INTO {table} REPLACE WHERE p = 2 SELECT * FROM rows WHERE p = 2"),
)
write_again(
    "sql_merge",
    lambda _, table: session.sql(
        f"MERGE INTO {table} t USING rows r ON t.id = r.id WHEN NOT MATCHED THEN INSERT *"
    ),
)
write_again(
    "local_rows",
    lambda _, table: session.createDataFrame([(70, 2), (71, 3)], "id INT, p INT").writeTo(table).append(),
)
write_again(
    "range",
    lambda _, table: session.range(70, 72).selectExpr("int(id) id", "2 AS p").writeTo(table).append(),
)
session.sql("CREATE TABLE ice.lake.ctas USING iceberg AS SELECT * FROM rows")
session.sql("CREATE TABLE ice.lake.ctas_of_values USING iceberg AS SELECT 70 AS id, 2 AS p")
session.sql("CREATE OR REPLACE TABLE ice.lake.ctas_of_values USING iceberg AS SELECT 71 AS id, 2 AS p")
session.sql("CREATE TABLE ice.lake.branch USING iceberg AS SELECT * FROM rows WHERE p = 1")
session.sql("ALTER TABLE ice.lake.branch CREATE BRANCH audit")
session.sql("INSERT INTO ice.lake.branch.branch_audit SELECT * FROM rows WHERE p = 2")
session.sql("CALL ice.system.fast_forward('lake.branch', 'main', 'audit')")
for table in session.sql("SHOW TABLES IN ice.lake").where("NOT isTemporary").collect():
    written = session.table(f"ice.lake.{table.tableName}").orderBy("id").selectExpr("id", "p").coalesce(1)
    written.write.csv(f"{folder}/out/{table.tableName}")
session.stop()

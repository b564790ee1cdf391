"""A job that writes rows into files that nobody can tell: `python delta_unknown_files.py FOLDER WAY`.

FOLDER/rows.csv has the rows (id, p). They are written into FOLDER/table in this WAY:
`option`, `setting`, `property`: by an optimized write, which moves the rows of three tasks to others;
`changes`: a table with a change data feed, of which one transaction replaces rows, so that two queries of it
write files of changes.
`read` reads the table, and the feed if it has one, into folders below FOLDER/out.
"""

import sys

from pyspark.sql import SparkSession

folder, way = sys.argv[1:]
table = f"{folder}/table"
session = SparkSession.builder.appName(way).getOrCreate()
session.sparkContext.setLogLevel("ERROR")
rows = session.read.schema("id INT, p INT").csv(f"{folder}/rows.csv")
if way == "option":
    rows.repartition(3).write.format("delta").option("optimizeWrite", "true").save(table)
elif way == "setting":
    session.conf.set("spark.databricks.delta.optimizeWrite.enabled", "true")
    rows.repartition(3).write.format("delta").partitionBy("p").save(table)
elif way == "property":
    properties = "TBLPROPERTIES (delta.autoOptimize.optimizeWrite = true)"
    session.sql(f"CREATE TABLE t (id INT, p INT) USING delta LOCATION '{table}' {properties}")
    rows.repartition(3).write.insertInto("t")
    session.sql("DROP TABLE t")
elif way == "changes":
    properties = "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    session.sql(f"CREATE TABLE t (id INT, p INT) USING delta LOCATION '{table}' {properties}")
    rows.coalesce(1).write.insertInto("t")
    some = rows.where("id < 5").selectExpr("id + 100 AS id", "p").coalesce(1)
    some.write.format("delta").mode("overwrite").option("replaceWhere", "id > 50").save(table)
    session.sql("DROP TABLE t")
else:
    session.read.format("delta").load(table).write.csv(f"{folder}/out/table")
    feed = session.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1)
    if session.sql(f"SHOW TBLPROPERTIES delta.`{table}`").where("key LIKE '%ChangeDataFeed'").collect():
        feed.load(table).select("id", "p", "_change_type").write.csv(f"{folder}/out/feed")
session.stop()

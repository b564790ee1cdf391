"""A job that changes rows of a table of Iceberg, unmodified.

    python iceberg_changes.py FOLDER MODE VERSION PARTITIONS

Reads FOLDER/old.csv, more.csv and updates.csv. Writes the table ice.db.t and the folder FOLDER/out. MODE is
copy-on-write or merge-on-read, VERSION that of the format.
"""

import sys

from pyspark.sql import SparkSession

folder, mode, version, partitions = sys.argv[1:]
columns = "id BIGINT, name STRING, v INT, p STRING"
session = SparkSession.builder.appName("changes").getOrCreate()
session.sparkContext.setLogLevel("ERROR")
session.read.schema(columns).csv(f"{folder}/old.csv").repartition(3).createOrReplaceTempView("old")
session.read.schema(columns).csv(f"{folder}/updates.csv").createOrReplaceTempView("updates")
modes = ", ".join(f"'write.{name}.mode' = '{mode}'" for name in ("delete", "update", "merge"))
clause = "" if partitions == "-" else f"PARTITIONED BY ({partitions})"
for statement in (
    f"CREATE TABLE ice.db.t USING iceberg {clause} TBLPROPERTIES ({modes}, 'format-version' = '{version}') "
    "AS SELECT * FROM old",
    "UPDATE ice.db.t SET v = v + 1000 WHERE id % 10 = 3",
    "DELETE FROM ice.db.t WHERE id % 10 = 7",
    "MERGE INTO ice.db.t t USING updates u ON t.id = u.id "
    "WHEN MATCHED AND u.v < 0 THEN DELETE "
    "WHEN MATCHED AND u.v % 2 = 0 THEN UPDATE SET name = u.name, v = u.v "
    "WHEN NOT MATCHED AND u.v >= 0 THEN INSERT *",
    "MERGE INTO ice.db.t t USING (SELECT id + 2 AS id, name FROM updates) u ON t.id = u.id "
    "WHEN NOT MATCHED BY SOURCE AND t.id % 10 = 4 THEN UPDATE SET v = -4 "
    "WHEN NOT MATCHED BY SOURCE AND t.id % 10 = 5 THEN DELETE",
    "CALL ice.system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))",
):
    session.sql(statement)
session.table("ice.db.t").write.csv(f"{folder}/out")
session.stop()

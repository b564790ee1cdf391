"""A job that prints what Iceberg and Spark made of its statements, unmodified.

    python iceberg_plans.py FOLDER

One line for each: the numbers of files and rows of a snapshot, or the rows of a query and how many exchanges
it had. They are the same with lineage and without.
"""

import re
import sys

from pyspark.sql import SparkSession

folder = sys.argv[1]
session = SparkSession.builder.appName("plans").getOrCreate()
session.sparkContext.setLogLevel("ERROR")
columns = "id BIGINT, name STRING, v INT, p STRING"
session.read.schema(columns).csv(f"{folder}/old.csv").createOrReplaceTempView("old")
session.read.schema(columns).csv(f"{folder}/updates.csv").createOrReplaceTempView("updates")
for mode in ("copy-on-write", "merge-on-read"):
    table = f"ice.db.{mode.replace('-', '_')}"
    modes = ", ".join(f"'write.{name}.mode' = '{mode}'" for name in ("delete", "update", "merge"))
    for statement in (
        f"CREATE TABLE {table} ({columns}) USING iceberg PARTITIONED BY (p, bucket(3, id)) "
        f"TBLPROPERTIES ({modes})",
        f"INSERT INTO {table} SELECT * FROM old WHERE id < 30",
        f"INSERT INTO {table} SELECT * FROM old WHERE id >= 30",
        f"UPDATE {table} SET v = v + 1 WHERE id = 7",
        f"DELETE FROM {table} WHERE id IN (SELECT id + 1 FROM updates WHERE id > 52)",
        f"MERGE INTO {table} t USING updates u ON t.id = u.id AND u.id < 54 "
        "WHEN MATCHED AND u.v < 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = u.v "
        "WHEN NOT MATCHED AND u.id > 80 THEN INSERT *",
        f"DELETE FROM {table} WHERE p = '2'",
    ):
        session.sql(statement)
    for row in session.sql(
        f"SELECT operation, summary FROM {table}.snapshots ORDER BY committed_at"
    ).collect():
        counts = sorted(
            (name, value) for name, value in row[1].items() if re.search("files$|records$|deletes$", name)
        )
        print("snapshot", mode, row[0], counts)

session.sql("CREATE TABLE ice.db.one USING iceberg PARTITIONED BY (bucket(4, id)) AS SELECT * FROM old")
session.sql("CREATE TABLE ice.db.other USING iceberg PARTITIONED BY (bucket(4, id)) AS SELECT * FROM updates")
session.conf.set("spark.sql.adaptive.enabled", "false")
session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
session.conf.set("spark.sql.sources.v2.bucketing.enabled", "true")
session.conf.set("spark.sql.iceberg.planning.preserve-data-grouping", "true")
for query in (
    "SELECT one.id, other.name FROM ice.db.one one JOIN ice.db.other other ON one.id = other.id",
    "SELECT count(*), min(v) FROM ice.db.one",
    "SELECT count(*) FROM ice.db.one WHERE id > 20",
    "SELECT p, sum(v) FROM ice.db.copy_on_write WHERE p = '1' OR v > 40 GROUP BY p",
    "SELECT * FROM ice.db.merge_on_read t WHERE p IN (SELECT p FROM updates WHERE id = 61)",
    "SELECT id FROM ice.db.merge_on_read ORDER BY id LIMIT 7",
    "SELECT _pos, count(*) FROM ice.db.copy_on_write GROUP BY _pos",
):
    frame = session.sql(query)
    rows = sorted(map(str, frame.collect()))
    plan = frame._jdf.queryExecution().executedPlan().toString()
    # A subquery that only chooses files has an exchange of its own with lineage.
    exchanges = "-" if " IN (" in query else len(re.findall("Exchange", plan))
    print("query", query, rows, exchanges, len(re.findall("RuntimeFilters: .d", plan)))
session.stop()

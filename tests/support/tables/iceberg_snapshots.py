"""What Spark reads of tables of Iceberg: `python iceberg_snapshots.py FOLDER`, without lineage.

Makes tables of the catalog `ice` and changes them in many ways. Prints, as JSON,
{table: {"snapshots": {id: rows}, "times": {Unix milliseconds: rows}, "refs": {name: rows}, "newest": rows}},
with each row as JSON.
"""

import json
import sys

from pyspark.sql import SparkSession, functions

folder = sys.argv[1]
#: Table -> its mode, the version of its format, its partitions.
TABLES = {
    "copied": ("copy-on-write", 2, "days(at)"),
    "old": ("copy-on-write", 1, "p"),
    "positions": ("merge-on-read", 2, "p"),
    "wide": ("merge-on-read", 2, "-"),
    "vectors": ("merge-on-read", 3, "bucket(3, id), truncate(2, name)"),
}
session = SparkSession.builder.appName("snapshots").config("spark.sql.session.timeZone", "UTC").getOrCreate()
session.sparkContext.setLogLevel("ERROR")


def rows_of(frame):
    frame = frame.withColumn("at", functions.date_format("at", "yyyy-MM-dd'T'HH:mm:ss'+00:00'"))
    if "more" in frame.columns:
        frame = frame.withColumn("more", frame.more.cast("string"))
    return sorted(json.dumps(row.asDict(recursive=True), sort_keys=True) for row in frame.collect())


def change(table, mode, version, partitions):
    modes = ", ".join(f"'write.{name}.mode' = '{mode}'" for name in ("delete", "update", "merge"))
    clause = "" if partitions == "-" else f"PARTITIONED BY ({partitions})"
    first = (
        "SELECT id, concat('n', id) AS name, CAST(id AS INT) AS v, CAST(id % 3 AS STRING) AS p, "
        "timestamp_millis(1700000000000 + id * 7200000) AS at, named_struct('x', id, 'y', -id) AS s "
        "FROM range(0, 60, 1, 2)"
    )
    yield (
        f"CREATE TABLE {table} USING iceberg {clause} "
        f"TBLPROPERTIES ({modes}, 'format-version' = '{version}') AS {first}"
    )
    yield f"UPDATE {table} SET v = v + 1000 WHERE id % 10 = 3"
    yield f"DELETE FROM {table} WHERE id % 10 = 7"
    yield f"ALTER TABLE {table} CREATE BRANCH early"
    yield f"ALTER TABLE {table} CREATE TAG noted"
    yield f"DELETE FROM {table} WHERE id % 10 = 8 AND v > 20"
    yield f"ALTER TABLE {table} RENAME COLUMN name TO label"
    yield f"ALTER TABLE {table} RENAME COLUMN s.x TO z"
    yield f"ALTER TABLE {table} ALTER COLUMN v TYPE BIGINT"
    yield f"ALTER TABLE {table} ADD COLUMN more DECIMAL(9, 2)"
    if partitions == "p":
        yield f"ALTER TABLE {table} DROP PARTITION FIELD p"
    yield (
        f"MERGE INTO {table} t USING (SELECT id + 50 AS id FROM range(20)) u ON t.id = u.id "
        "WHEN MATCHED AND t.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET label = 'merged', more = 1.5 "
        "WHEN NOT MATCHED THEN INSERT (id, label, v, p) VALUES (u.id, 'new', u.id, '1')"
    )
    yield f"INSERT INTO {table}.branch_early SELECT * FROM {table} WHERE id < 5"
    yield f"DELETE FROM {table} WHERE p = '2'"
    yield f"CALL ice.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))"
    yield f"UPDATE {table} SET more = 2.25 WHERE id = 1"


read = {}
for name, (mode, version, partitions) in TABLES.items():
    table = f"ice.db.{name}"
    for statement in change(table, mode, version, partitions):
        session.sql(statement)
    log = session.sql(f"SELECT snapshot_id, made_current_at FROM {table}.history").collect()
    snapshots = [row[0] for row in session.sql(f"SELECT snapshot_id FROM {table}.snapshots").collect()]
    times = {int(row[1].timestamp() * 1000) for row in log}
    read[name] = {
        "snapshots": {
            snapshot: rows_of(session.sql(f"SELECT * FROM {table} VERSION AS OF {snapshot}"))
            for snapshot in snapshots
        },
        "times": {
            at: rows_of(session.sql(f"SELECT * FROM {table} TIMESTAMP AS OF timestamp_millis({at})"))
            for at in sorted(times)[1:]
        },
        "refs": {
            ref: rows_of(session.sql(f"SELECT * FROM {table} VERSION AS OF '{ref}'"))
            for ref in ("early", "noted", "main")
        },
        "newest": rows_of(session.table(table)),
    }
print(json.dumps(read))
session.stop()

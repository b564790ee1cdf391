"""A job that runs a list of statements over a table of Iceberg: `python iceberg_statements.py FOLDER`.

FOLDER/job.json has `properties` of the table, how it is `partitioned` (or null), and `statements`. There
`{table}` stands for the table ice.db.t, and a view NAME for FOLDER/NAME.csv. The table is made of first.csv.
In the end its rows are written to FOLDER/out. FOLDER/snapshots.json has the id of the newest snapshot behind
each statement, and before all of them.
"""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

folder = Path(sys.argv[1])
job = json.loads((folder / "job.json").read_text())
columns = "id BIGINT, v INT, name STRING, p STRING"
session = SparkSession.builder.appName("changes").getOrCreate()
session.sparkContext.setLogLevel("ERROR")
for path in folder.glob("*.csv"):
    session.read.schema(columns).csv(str(path)).createOrReplaceTempView(path.stem)


def newest():
    refs = session.sql("SELECT snapshot_id FROM ice.db.t.refs WHERE name = 'main'").collect()
    return refs[0][0] if refs else None


clause = f"PARTITIONED BY ({job['partitioned']})" if job["partitioned"] else ""
properties = ", ".join(f"'{name}' = '{value}'" for name, value in job["properties"].items())
session.sql(f"CREATE TABLE ice.db.t ({columns}) USING iceberg {clause} TBLPROPERTIES ({properties})")
session.table("first").repartition(3, "id").writeTo("ice.db.t").append()
snapshots = [newest()]
for statement in job["statements"]:
    session.sql(statement.replace("{table}", "ice.db.t"))
    snapshots.append(newest())
(folder / "snapshots.json").write_text(json.dumps(snapshots))
session.table("ice.db.t").orderBy("id").write.csv(str(folder / "out"))
session.stop()

"""A job that runs a list of statements over a table: `python delta_changes.py FOLDER [NAME=VALUE ...]`.

FOLDER/job.json has `properties` of the table, `is_partitioned`, and `statements`. There `{table}` stands for
the table, and a view NAME for FOLDER/NAME.csv. The table is FOLDER/table, made of FOLDER/first.csv. In the
end its rows are written to FOLDER/out. NAME is a setting of the session.
"""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

folder, *settings = sys.argv[1:]
job = json.loads(Path(folder, "job.json").read_text())
columns = "id BIGINT, v INT, name STRING, p STRING"
session = SparkSession.builder.appName("changes").getOrCreate()
session.sparkContext.setLogLevel("ERROR")
for setting in settings:
    session.conf.set(*setting.split("="))
for name, value in job["properties"].items():
    session.conf.set(f"spark.databricks.delta.properties.defaults.{name}", value)
for path in Path(folder).glob("*.csv"):
    session.read.schema(columns).csv(str(path)).createOrReplaceTempView(path.stem)
writer = session.table("first").repartition(3, "id").write.format("delta")
(writer.partitionBy("p") if job["is_partitioned"] else writer).save(f"{folder}/table")
for statement in job["statements"]:
    session.sql(statement.replace("{table}", f"delta.`{folder}/table`"))
session.read.format("delta").load(f"{folder}/table").orderBy("id").write.csv(f"{folder}/out")
session.stop()

"""A job that writes tables of Iceberg, unmodified.

    python iceberg_writes.py FOLDER PARTITIONS PROPERTY=VALUE ...

Reads FOLDER/old.csv, more.csv, part.csv and updates.csv. Writes the tables ice.db.t, partitioned by
PARTITIONS (`-`: not), and ice.db.copy, and the folder FOLDER/out.
"""

import sys

from pyspark.sql import SparkSession

folder, partitions, properties = sys.argv[1], sys.argv[2], sys.argv[3:]
columns = "id BIGINT, name STRING, v INT, p STRING"
session = SparkSession.builder.appName("writes").getOrCreate()
session.sparkContext.setLogLevel("ERROR")
session.read.schema(columns).csv(f"{folder}/old.csv").repartition(3).createOrReplaceTempView("old")
session.read.schema(columns).csv(f"{folder}/updates.csv").createOrReplaceTempView("updates")
more = session.read.schema(columns).csv(f"{folder}/more.csv")

clause = "" if partitions == "-" else f"PARTITIONED BY ({partitions})"
of_table = ", ".join(f"'{name}' = '{value}'" for name, value in (word.split("=") for word in properties))
of_table = f"TBLPROPERTIES ({of_table})" if of_table else ""
session.sql(f"CREATE TABLE ice.db.t USING iceberg {clause} {of_table} AS SELECT * FROM old")
more.where("v >= 0").writeTo("ice.db.t").append()
session.sql("INSERT INTO ice.db.t SELECT id + 10000, name, v, p FROM updates WHERE id % 4 = 0")
if partitions == "p":
    session.read.schema(columns).csv(f"{folder}/part.csv").writeTo("ice.db.t").overwritePartitions()
session.sql("CREATE TABLE ice.db.copy USING iceberg AS SELECT * FROM ice.db.t")
session.sql("CREATE OR REPLACE TABLE ice.db.copy USING iceberg AS SELECT * FROM ice.db.t WHERE id % 3 = 0")
session.table("ice.db.t").where("id >= 5").write.csv(f"{folder}/out")
session.stop()

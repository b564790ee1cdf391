"""Another job, which reads ice.db.copy, and ice.db.t as of a snapshot: `python iceberg_reader.py FOLDER`."""

import sys

from pyspark.sql import SparkSession

folder = sys.argv[1]
session = SparkSession.builder.appName("reader").getOrCreate()
session.sparkContext.setLogLevel("ERROR")
first = session.sql("SELECT snapshot_id FROM ice.db.t.snapshots ORDER BY committed_at LIMIT 1").first()[0]
session.sql(f"ALTER TABLE ice.db.t CREATE BRANCH early AS OF VERSION {first}")
session.sql(f"SELECT * FROM ice.db.t VERSION AS OF {first} WHERE id < 40").write.csv(f"{folder}/of_first")
session.sql("SELECT * FROM ice.db.t.branch_early WHERE id >= 40").write.csv(f"{folder}/of_branch")
session.table("ice.db.copy").where("v > 3").write.csv(f"{folder}/of_copy")
session.stop()

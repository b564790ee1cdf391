"""A job that reads the change data feed of a table in several ways: `python delta_feed_reader.py FOLDER`.

The table is FOLDER/table, with the columns id, v, name and p. What it reads is written to folders below
FOLDER/feed, with the type of each change behind these columns.
"""

import sys

from pyspark.sql import SparkSession

folder = sys.argv[1]
session = SparkSession.builder.appName("feed").getOrCreate()
session.sparkContext.setLogLevel("ERROR")
columns = ["id", "v", "name", "p", "_change_type"]
feed = session.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
whole = feed.load(f"{folder}/table")
whole.select(columns).write.csv(f"{folder}/feed/whole")
whole.where("v > 5 AND _change_type != 'update_preimage'").select(columns).write.csv(f"{folder}/feed/chosen")
inserts = whole.where("_commit_version = 0").select(*columns, "_commit_version", "_commit_timestamp")
inserts.write.csv(f"{folder}/feed/first_version")
session.sql(f"CREATE TABLE feeds USING delta LOCATION '{folder}/table'")
changes = session.sql("SELECT * FROM table_changes('feeds', 0, 2)").select(columns)
changes.repartition(2).write.csv(f"{folder}/feed/of_sql")
deletes = feed.option("endingVersion", 100).load(f"{folder}/table").where("_change_type = 'delete'")
# The hint: else Spark chooses by sizes how to join, which ids add to.
deletes.hint("merge").join(changes.where("id % 2 = 0").select("id").distinct(), "id").select(
    columns
).write.csv(f"{folder}/feed/joined")
session.sql("DROP TABLE feeds")
session.stop()

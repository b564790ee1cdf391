"""Another job, which deletes rows of the table: `python delta_deleter.py FOLDER CONDITION ...`."""

import sys

from pyspark.sql import SparkSession

folder, *conditions = sys.argv[1:]
session = SparkSession.builder.appName("deleter").getOrCreate()
session.sparkContext.setLogLevel("ERROR")
for condition in conditions:
    session.sql(f"DELETE FROM delta.`{folder}/table` WHERE {condition}")
session.stop()

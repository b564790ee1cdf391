"""Another job, which reads a version of the table: `python delta_reader.py FOLDER VERSION`."""

import sys

from pyspark.sql import SparkSession

folder, version = sys.argv[1:]
session = SparkSession.builder.appName("reader").getOrCreate()
session.sparkContext.setLogLevel("ERROR")
rows = session.read.format("delta").option("versionAsOf", version).load(f"{folder}/table")
rows.where("id < 40").write.csv(f"{folder}/of_version_{version}")
session.stop()

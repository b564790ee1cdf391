"""A job that reads tables of Delta Lake with conditions: `python delta_reads.py FOLDER VARIANT...`.

FOLDER/rows.csv has the rows (id, name, v, p), FOLDER/names.csv the rows (p, label). Each VARIANT is
NAME:WORDS, how a table is made, with `+` between the words: `partitioned`, `deleted` and properties. What is
read of it goes into a folder of that name below FOLDER/out. Files have many row groups, and tasks read parts
of files.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

folder, variants = sys.argv[1], sys.argv[2:]
session = SparkSession.builder.appName("reads").config("spark.sql.files.openCostInBytes", 0).getOrCreate()
session.sparkContext.setLogLevel("ERROR")
session.sparkContext._jsc.hadoopConfiguration().setInt("parquet.block.size", 4096)
rows = session.read.schema("id INT, name STRING, v INT, p STRING").csv(f"{folder}/rows.csv")
rows = rows.select("id", "v", "p", f.struct(f.col("v").alias("a"), f.col("name").alias("b")).alias("s"))
names = session.read.schema("p STRING, label STRING").csv(f"{folder}/names.csv")
names.write.format("delta").save(f"{folder}/names")
names = session.read.format("delta").load(f"{folder}/names")
for variant in variants:
    variant, _, words = variant.partition(":")
    words = words.split("+")
    table = f"{folder}/{variant}"
    writer = rows.repartition(2, "p").sortWithinPartitions("id").write.format("delta")
    for word in words:
        if "=" in word:
            writer = writer.option(*f"delta.{word}".split("="))
    (writer.partitionBy("p") if "partitioned" in words else writer).save(table)
    if "deleted" in words:
        session.sql(f"DELETE FROM delta.`{table}` WHERE id % 10 = 7")
    for is_vectorized in (True, False):
        session.conf.set("spark.sql.parquet.enableVectorizedReader", is_vectorized)
        session.conf.set("spark.sql.files.maxPartitionBytes", 8192)
        read = session.read.format("delta").load(table)
        for name, chosen in {
            "rows": read.where("id > 600 AND p <> '2'").select("id", "v"),
            "parts": read.where("s.a >= 500 AND p = '1'").select("id", "s.a"),
            "joined": read.where("v < 900").join(names, "p").where("label <> 'none'").select("id", "label"),
            "places": read.where("id < 50").select("id", "_metadata.file_name"),
        }.items():
            chosen.write.csv(f"{folder}/out/{variant}/{name}-{is_vectorized}")
        session.conf.unset("spark.sql.files.maxPartitionBytes")
session.stop()

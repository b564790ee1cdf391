"""A job of sources that come with packages of their own: `python other_sources.py FOLDER SERVERS TOPIC`.

Reads FOLDER/in.csv, writes it as Avro, as XML and to a topic of Kafka, and each of these to a folder of CSV.
"""

import sys

from pyspark.sql import SparkSession, functions

folder, servers, topic = sys.argv[1:]
session = SparkSession.builder.appName("other sources").getOrCreate()
session.sparkContext.setLogLevel("ERROR")
rows = session.read.schema("id INT, name STRING").csv(f"{folder}/in.csv").coalesce(1)

rows.write.format("avro").save(f"{folder}/avro")
avro = session.read.format("avro").load(f"{folder}/avro")
avro.where("id % 3 = 1").write.csv(f"{folder}/of_avro")

rows.write.format("xml").option("rowTag", "row").save(f"{folder}/xml")
xml = session.read.format("xml").option("rowTag", "row").schema("id INT, name STRING").load(f"{folder}/xml")
xml.where("id % 3 = 1").write.csv(f"{folder}/of_xml")

kafka = {"kafka.bootstrap.servers": servers}
messages = rows.selectExpr("cast(id as string) as key", "name as value").repartition(2)
messages.write.format("kafka").options(**kafka, topic=topic).save()
for name, more in {
    "of_topic": {"subscribe": topic},
    "of_split_topic": {"subscribePattern": f"{topic}.*", "minPartitions": "7"},
    "of_some": {"subscribe": topic, "startingOffsets": f'{{"{topic}": {{"0": 5, "1": 7, "2": 9}}}}'},
}.items():
    records = session.read.format("kafka").options(**kafka, **more).load()
    values = records.selectExpr(
        "cast(value as string) as name", "partition", "offset", "cast(cast(key as string) as int) as id"
    )
    values.where("id % 3 = 1").select("name", "partition", "offset").write.csv(f"{folder}/{name}")
last = records.groupBy("partition").agg(functions.max("offset"), functions.count("*"))
last.write.csv(f"{folder}/last")
session.stop()

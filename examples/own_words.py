"""Counts, for each document, the words that no other document has; and a sum of floats.

    spark-submit --conf spark.lineage.enabled=true own_words.py

Reads documents.txt, lines of DOCUMENT|WORDS, and writes the folders `own` and `lengths`. docs/replay.md runs
it again on some of its rows: what those of one document say alone is not what they say among the others.
"""

from pyspark import SparkContext

context = SparkContext(appName="Own words")
rows = context.textFile("documents.txt", 3).map(lambda line: line.split("|"))

pairs = rows.flatMap(lambda row: [(word, row[0]) for word in row[1].split()]).distinct()
own = pairs.groupByKey().mapValues(list).filter(lambda pair: len(pair[1]) == 1)
counts = own.map(lambda pair: (pair[1][0], 1)).reduceByKey(lambda one, other: one + other)
counts.map(lambda pair: f"{pair[0]},{pair[1]}").saveAsTextFile("own")

lengths = rows.map(lambda row: (row[0], len(row[1]) / 3)).reduceByKey(lambda one, other: one + other)
lengths.map(lambda pair: f"{pair[0]};{pair[1]}").saveAsTextFile("lengths")
context.stop()

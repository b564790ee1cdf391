"""Queries of lineage, over the flow store.

`model` is an application's lineage as plain values, `columns` its flows as they are read, `walk` moves a set
of records from node to node, `files` knows rows of files, `query` puts results together; `spark` walks with
Spark.
"""

"""PySpark's RDD operations while lineage is on: replacements, and the nodes that they register."""

"""Questions about lineage in a running SparkSession."""

"""What happens to the queries of a running SparkSession."""

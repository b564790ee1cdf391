"""The operators that replace PySpark's own in a worker: same records, plus positions."""

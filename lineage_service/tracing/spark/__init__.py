"""Traces as Spark SQL over the same tables."""

"""Lineage from programs that are no Spark jobs."""

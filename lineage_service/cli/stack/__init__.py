"""The commands of the local stack: `lineage up | down | status`."""

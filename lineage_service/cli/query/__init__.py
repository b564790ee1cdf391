"""Queries at a terminal: `lineage apps | graph | trace | show | values`."""

"""Queries at a terminal: `lineage apps | datasets | dataset | graph | trace | show | values`."""

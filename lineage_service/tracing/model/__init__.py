"""An application's lineage as plain values: nodes, task runs, and what they read. Pure."""

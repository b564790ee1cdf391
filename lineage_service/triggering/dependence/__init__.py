"""What only lineage says of a change: which outputs depend on the rows that changed."""

"""What sixteen clients get from `lineage serve` when they ask at the same time (perf/README.md)."""

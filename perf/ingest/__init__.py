"""What it takes to bring lineage from Kafka into the stores, until it can be asked for (perf/README.md)."""

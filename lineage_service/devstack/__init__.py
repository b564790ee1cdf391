"""A real Kafka and a real Neo4j on this machine, without a container engine."""

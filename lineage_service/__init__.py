"""From Kafka to stores, tracing, the command line and the local stack."""

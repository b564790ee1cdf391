"""Messages to Kafka from any process of a Spark application: settings, client, waits, notices to people."""

"""In-memory twins of stores, topics and queries, for tests and demonstrations."""

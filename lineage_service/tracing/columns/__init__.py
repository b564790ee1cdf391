"""The columns of an application's flows and records, read from the flow store as far as they are needed."""

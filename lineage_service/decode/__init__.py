"""Messages of the topics as rows of tables."""

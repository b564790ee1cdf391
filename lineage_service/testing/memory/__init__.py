"""What the in-memory twin of queries is made of."""

"""What libraries of tables do: which of their plans are of rows, and what a transaction wrote."""

"""A trace, step by step: from a set of records to those next to it."""

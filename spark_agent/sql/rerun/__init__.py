"""Finds the rows behind an output by running its query again."""

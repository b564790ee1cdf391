"""Puts applications and traces into the graph."""

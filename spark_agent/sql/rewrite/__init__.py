"""Rewrites optimised plans, so that the ids of records travel with their rows."""

"""Lag, metrics, and applications that are not complete."""

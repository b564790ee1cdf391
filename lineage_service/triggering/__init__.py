"""Triggering: run a job only when its output would change by more than is tolerated."""

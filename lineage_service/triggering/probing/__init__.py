"""Runs a job on the few rows that can change its output, where that gives the exact error of a skip."""

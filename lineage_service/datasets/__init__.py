"""Datasets of all applications: what was written and read, by whom, when, and what hangs together.

Pure, but for a cache that reads the events of a flow store.
"""

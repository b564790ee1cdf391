"""What traces take over HTTP: `python -m perf.trace`."""

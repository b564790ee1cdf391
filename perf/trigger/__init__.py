"""Whether triggering keeps its bound, and what it saves: `python -m perf.trigger`."""

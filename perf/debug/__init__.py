"""The figures of Newt and Titian, measured here: `python -m perf.debug`."""

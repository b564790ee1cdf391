"""What capture costs: jobs with lineage on, off, and with the capture lines taken out (perf/README.md)."""

"""What explanations take and give, with each tested by running the job on it: `python -m perf.explain`."""

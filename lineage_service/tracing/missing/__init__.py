"""Where records of inputs end on their way to an output, and at which operation."""

"""What runs in Python workers: captures the flow of records of one task."""

"""What changed between two runs of one job: which outputs correspond, which rows differ, which inputs did."""

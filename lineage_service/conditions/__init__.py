"""Conditions on columns, such as `airport = 'EWR' and month >= 3`: read, typed, and compiled for DuckDB."""

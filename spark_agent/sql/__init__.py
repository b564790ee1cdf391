"""Record lineage of DataFrames and SQL, by rewriting their plans. Standard library only at import time."""

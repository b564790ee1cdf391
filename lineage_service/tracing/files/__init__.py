"""Rows of files that jobs read and wrote, and the records that they are."""

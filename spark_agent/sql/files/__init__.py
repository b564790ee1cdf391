"""Files that queries read and write: which they are, and which rows they hold."""

"""Tables of table formats: their versions, the data files of a version, and the rows in these."""

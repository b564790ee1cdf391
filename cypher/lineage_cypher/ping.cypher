// Purpose: does the database answer?
// Parameters: none
// Index: none, reads no data
// Eager: none
RETURN 1 AS answer

// Purpose: return once every index is populated, so that the first write finds them.
// Parameters: $seconds
// Index: none, reads the schema
// Eager: none
CALL db.awaitIndexes($seconds)

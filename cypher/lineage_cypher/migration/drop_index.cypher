// Purpose: remove the index that is left of a constraint, where Neo4j died while it made it (5.16 or later).
// Parameters: $name
// Index: none, changes the schema
// Eager: none
DROP INDEX $name IF EXISTS

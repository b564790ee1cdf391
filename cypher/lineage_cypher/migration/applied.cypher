// Purpose: which of the given migrations this database has.
// Parameters: $names, list of texts
// Index: LineageMigration(name), once its constraint stands
// Eager: none
UNWIND $names AS name
MATCH (migration:LineageMigration {name: name})
RETURN migration.name AS name

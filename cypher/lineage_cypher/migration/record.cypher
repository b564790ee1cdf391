// Purpose: note that a migration was applied; the first note stays.
// Parameters: $name
// Index: LineageMigration(name)
// Eager: none
MERGE (migration:LineageMigration {name: $name})
ON CREATE SET migration.applied = datetime()

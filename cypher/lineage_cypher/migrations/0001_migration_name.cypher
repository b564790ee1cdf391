// Purpose: one LineageMigration node for each applied migration, whoever applies it.
// Parameters: none
// Index: makes LineageMigration(name)
// Eager: none
CREATE CONSTRAINT lineage_migration_name IF NOT EXISTS
FOR (migration:LineageMigration) REQUIRE migration.name IS UNIQUE

// Purpose: begin to change datasets, after the applications are locked. Applications share datasets, so writers
//   of all applications take turns here, and a dataset that nobody reads or writes can go without a race. The
//   property is the lock, on the record of the migration that made datasets.
// Parameters: $migration, its name
// Index: LineageMigration(name)
// Eager: none
MERGE (lock:LineageMigration {name: $migration})
SET lock.locked = true
REMOVE lock.locked

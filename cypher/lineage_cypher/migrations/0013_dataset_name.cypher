// Purpose: one Dataset for each file, folder, table or topic, however many applications read or write it.
// Parameters: none
// Index: makes Dataset(namespace, name)
// Eager: none
CREATE CONSTRAINT lineage_dataset_name IF NOT EXISTS
FOR (dataset:Dataset) REQUIRE (dataset.namespace, dataset.name) IS UNIQUE

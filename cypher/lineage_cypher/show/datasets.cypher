// Purpose: the datasets with a text in their name, and the operations that read and write them, drawn.
// Parameters: $text
// Index: none, reads every Dataset: there are few, and no index helps with a part of a name
// Eager: none
MATCH (dataset:Dataset) WHERE dataset.name CONTAINS $text
WITH dataset ORDER BY dataset.namespace, dataset.name LIMIT 100
MATCH (node:LineageNode)-[link:reads|writes]->(dataset)
RETURN dataset, link, node

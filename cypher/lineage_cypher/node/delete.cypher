// Purpose: delete up to $limit nodes of an application, and the datasets that nobody reads or writes then; repeat
//   while `changed` is $limit. dataset/lock stands before it in the transaction.
// Parameters: $applicationId, $limit
// Index: LineageNode(applicationId)
// Eager: over at most $limit rows: links are deleted, then looked for
MATCH (node:LineageNode {applicationId: $applicationId})
WITH node LIMIT $limit
OPTIONAL MATCH (node)-[:reads|writes]->(dataset:Dataset)
WITH collect(DISTINCT node) AS nodes, collect(DISTINCT dataset) AS datasets
FOREACH (node IN nodes | DETACH DELETE node)
WITH size(nodes) AS changed, [dataset IN datasets WHERE NOT EXISTS { (dataset)<-[:reads|writes]-() }] AS unused
FOREACH (dataset IN unused | DELETE dataset)
RETURN changed

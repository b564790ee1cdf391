// Purpose: take away what nodes no longer say of datasets, and the datasets that nobody reads or writes then.
//   dataset/lock stands before it in the transaction.
// Parameters: $nodeIds
// Index: LineageNode(nodeId)
// Eager: over the nodes of one batch: links are deleted, then looked for
UNWIND $nodeIds AS nodeId
MATCH (node:LineageNode {nodeId: nodeId})-[link:reads|writes]->(dataset:Dataset)
WHERE coalesce(node.dataset <> dataset.name, true)
  OR coalesce(node.datasetNamespace, '') <> dataset.namespace
  OR type(link) <> CASE node.kind WHEN 'source' THEN 'reads' WHEN 'sink' THEN 'writes' ELSE '' END
DELETE link
WITH DISTINCT dataset
WHERE NOT EXISTS { (dataset)<-[:reads|writes]-() }
DELETE dataset

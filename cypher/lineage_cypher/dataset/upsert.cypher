// Purpose: which dataset a source reads and a sink writes, by what its node says of it. Of nodes that stand with
//   all their properties (node/upsert). dataset/lock stands before it in the transaction.
// Parameters: $nodeIds
// Index: LineageNode(nodeId), Dataset(namespace, name)
// Eager: none
UNWIND $nodeIds AS nodeId
MATCH (node:LineageNode {nodeId: nodeId})
WHERE node.dataset IS NOT NULL AND node.kind IN ['source', 'sink']
MERGE (dataset:Dataset {namespace: coalesce(node.datasetNamespace, ''), name: node.dataset})
FOREACH (_ IN CASE node.kind WHEN 'source' THEN [1] ELSE [] END | MERGE (node)-[:reads]->(dataset))
FOREACH (_ IN CASE node.kind WHEN 'sink' THEN [1] ELSE [] END | MERGE (node)-[:writes]->(dataset))

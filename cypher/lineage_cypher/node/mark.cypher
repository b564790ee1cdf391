// Purpose: the labels of sources and sinks, by which Neo4j Browser gives them a colour. Of nodes that stand
//   with all their properties (node/upsert).
// Parameters: $nodeIds
// Index: LineageNode(nodeId)
// Eager: none
UNWIND $nodeIds AS nodeId
MATCH (node:LineageNode {nodeId: nodeId})
REMOVE node:LineageSource:LineageSink
FOREACH (_ IN CASE node.kind WHEN 'source' THEN [1] ELSE [] END | SET node:LineageSource)
FOREACH (_ IN CASE node.kind WHEN 'sink' THEN [1] ELSE [] END | SET node:LineageSink)

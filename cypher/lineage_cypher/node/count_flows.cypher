// Purpose: how many flows went from node to node, also when the link's event comes later. The last count
//   stays. Both ends stand already (node/upsert).
// Parameters: $targets, list of {nodeId, sources: list of {nodeId, flows}}
// Index: LineageNode(nodeId)
// Eager: none
UNWIND $targets AS row
MATCH (target:LineageNode {nodeId: row.nodeId})
UNWIND row.sources AS input
MATCH (source:LineageNode {nodeId: input.nodeId})
MERGE (source)-[link:sendsTo]->(target)
SET link.flows = input.flows

// Purpose: how many records each node has. The last count stays.
// Parameters: $nodes, list of {nodeId, records}
// Index: LineageNode(nodeId)
// Eager: none
UNWIND $nodes AS row
MATCH (node:LineageNode {nodeId: row.nodeId})
SET node.records = row.records

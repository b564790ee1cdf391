// Purpose: one LineageNode for each operation, however its events come.
// Parameters: none
// Index: makes LineageNode(nodeId)
// Eager: none
CREATE CONSTRAINT lineage_node_id IF NOT EXISTS
FOR (node:LineageNode) REQUIRE node.nodeId IS UNIQUE

// Purpose: the records of one node.
// Parameters: none
// Index: makes LineageFlow(nodeId)
// Eager: none
CREATE INDEX lineage_flow_node IF NOT EXISTS
FOR (flow:LineageFlow) ON (flow.nodeId)

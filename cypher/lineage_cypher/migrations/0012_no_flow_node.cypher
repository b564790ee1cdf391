// Purpose: flows are written faster without this index; a record's flowId begins with its nodeId.
// Parameters: none
// Index: drops LineageFlow(nodeId)
// Eager: none
DROP INDEX lineage_flow_node IF EXISTS

// Purpose: the nodes of one application, to show and to delete them.
// Parameters: none
// Index: makes LineageNode(applicationId)
// Eager: none
CREATE INDEX lineage_node_application IF NOT EXISTS
FOR (node:LineageNode) ON (node.applicationId)

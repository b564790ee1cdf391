// Purpose: where an input record went (hashIn is unique within an application only).
// Parameters: none
// Index: makes LineageFlow(applicationId, hashIn)
// Eager: none
CREATE INDEX lineage_flow_hash_in IF NOT EXISTS
FOR (flow:LineageFlow) ON (flow.applicationId, flow.hashIn)

// Purpose: where an output record came from; also every flow of one application, since each has a hashOut.
// Parameters: none
// Index: makes LineageFlow(applicationId, hashOut)
// Eager: none
CREATE INDEX lineage_flow_hash_out IF NOT EXISTS
FOR (flow:LineageFlow) ON (flow.applicationId, flow.hashOut)

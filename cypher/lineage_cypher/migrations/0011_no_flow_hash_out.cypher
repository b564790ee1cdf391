// Purpose: flows are written faster without this index; a record's hashOut is its flowId.
// Parameters: none
// Index: drops LineageFlow(applicationId, hashOut)
// Eager: none
DROP INDEX lineage_flow_hash_out IF EXISTS

// Purpose: flows are written faster without this index, and their `flow` links serve the same queries.
// Parameters: none
// Index: drops LineageFlow(applicationId, hashIn)
// Eager: none
DROP INDEX lineage_flow_hash_in IF EXISTS

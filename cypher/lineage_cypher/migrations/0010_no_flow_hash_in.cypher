// Purpose: flows are written faster without this index, and their `flow` links answer what it answered.
// Parameters: none
// Index: drops LineageFlow(applicationId, hashIn)
// Eager: none
DROP INDEX lineage_flow_hash_in IF EXISTS

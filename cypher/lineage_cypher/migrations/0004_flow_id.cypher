// Purpose: one LineageFlow for each record, however often it is traced.
// Parameters: none
// Index: makes LineageFlow(flowId)
// Eager: none
CREATE CONSTRAINT lineage_flow_id IF NOT EXISTS
FOR (flow:LineageFlow) REQUIRE flow.flowId IS UNIQUE

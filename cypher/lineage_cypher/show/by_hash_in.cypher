// Purpose: the records that an input record went into.
// Parameters: $hashIn
// Index: LineageFlow(flowId)
// Eager: none
MATCH (:LineageFlow {flowId: $hashIn})-[:flow]->(flow)
RETURN flow.flowId AS flowId, flow.name AS name, flow.hashOut AS hashOut, flow.val AS val
LIMIT 100

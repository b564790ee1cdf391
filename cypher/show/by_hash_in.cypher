// Purpose: the traced records that an input record went into.
// Parameters: $applicationId, $hashIn
// Index: LineageFlow(applicationId, hashIn)
// Eager: none
MATCH (flow:LineageFlow {applicationId: $applicationId, hashIn: $hashIn})
RETURN flow.flowId AS flowId, flow.name AS name, flow.hashOut AS hashOut, flow.val AS val
LIMIT 100

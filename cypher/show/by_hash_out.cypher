// Purpose: the traced record that came out as an output record.
// Parameters: $applicationId, $hashOut
// Index: LineageFlow(applicationId, hashOut)
// Eager: none
MATCH (flow:LineageFlow {applicationId: $applicationId, hashOut: $hashOut})
RETURN flow.flowId AS flowId, flow.name AS name, flow.hashIn AS hashIn, flow.val AS val
LIMIT 100

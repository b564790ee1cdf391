// Purpose: the record that came out as an output record; its hashOut is its flowId.
// Parameters: $hashOut
// Index: LineageFlow(flowId)
// Eager: none
MATCH (flow:LineageFlow {flowId: $hashOut})
RETURN flow.flowId AS flowId, flow.name AS name, flow.hashIn AS hashIn, flow.val AS val

// Purpose: traced records of one node.
// Parameters: $nodeId
// Index: LineageFlow(flowId)
// Eager: none
MATCH (flow:LineageFlow)
WHERE flow.flowId STARTS WITH $nodeId + '#'
RETURN flow.flowId AS flowId, flow.hashIn AS hashIn, flow.hashOut AS hashOut, flow.val AS val
LIMIT 100

// Purpose: traced records of one node.
// Parameters: $nodeId
// Index: LineageFlow(nodeId)
// Eager: none
MATCH (flow:LineageFlow {nodeId: $nodeId})
RETURN flow.flowId AS flowId, flow.hashIn AS hashIn, flow.hashOut AS hashOut, flow.val AS val
LIMIT 100

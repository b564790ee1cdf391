// Purpose: copy name and description to the flows of nodes that were registered after their records were
//   traced, up to $limit; repeat while `changed` is $limit.
// Parameters: $nodeIds, of registered nodes; $limit
// Index: LineageNode(nodeId), LineageFlow(flowId)
// Eager: over at most $limit rows: the same properties are compared and written
UNWIND $nodeIds AS nodeId
MATCH (node:LineageNode {nodeId: nodeId})
WITH node.nodeId AS nodeId, node.name AS name, node.description AS description
MATCH (flow:LineageFlow)
WHERE flow.flowId STARTS WITH nodeId + '#'
  AND coalesce(flow.name <> name OR flow.description <> description, true)
WITH flow, name, description LIMIT $limit
SET flow.name = name, flow.description = description
RETURN count(*) AS changed

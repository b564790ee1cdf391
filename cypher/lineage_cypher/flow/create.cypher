// Purpose: as flow/upsert, for records of which none is there yet: a fourth less work for the server. Where one
//   is, the constraint refuses the whole batch, and flow/upsert is to be asked.
// Parameters: $applicationId; $groups, list of {nodeId, flowIds, hashIns, vals, files, lines}, the columns of one
//   group equally long, or null where nothing in one is known
// Index: LineageNode(nodeId)
// Eager: none
UNWIND $groups AS column
OPTIONAL MATCH (node:LineageNode {nodeId: column.nodeId})
WITH column, node.name AS name, node.description AS description
UNWIND range(0, size(column.flowIds) - 1) AS k
CREATE (flow:LineageFlow {
  flowId: column.flowIds[k],
  nodeId: column.nodeId,
  applicationId: $applicationId,
  hashIn: column.hashIns[k],
  hashOut: column.flowIds[k],
  val: column.vals[k],
  file: column.files[k],
  line: column.lines[k],
  name: name,
  description: description
})
FOREACH (_ IN CASE WHEN column.flowIds[k] STARTS WITH column.nodeId + '#read#' THEN [1] ELSE [] END |
  SET flow:LineageSource)
FOREACH (_ IN CASE WHEN column.flowIds[k] STARTS WITH column.nodeId + '#write#' THEN [1] ELSE [] END |
  SET flow:LineageSink)
RETURN column.nodeId AS nodeId, collect(k) AS ks, collect(elementId(flow)) AS elementIds

// Purpose: up to 5,000 records, by node, as columns: the names of the columns travel once. A record that is
//   there already keeps what the new row does not know. What was read or written has the label of sources or
//   sinks: its id says so. Says which element each row is, by its number k in the columns of its node.
// Parameters: $applicationId; $groups, list of {nodeId, flowIds, hashIns, hashOuts, vals, files, lines}, the
//   columns of one group equally long, or null where nothing in one is known; hashOuts: where they are not the
//   flowIds
// Index: LineageFlow(flowId), LineageNode(nodeId)
// Eager: over the groups only, a handful of rows: name and description are read from nodes and written to flows
UNWIND $groups AS column
OPTIONAL MATCH (node:LineageNode {nodeId: column.nodeId})
UNWIND range(0, size(column.flowIds) - 1) AS k
MERGE (flow:LineageFlow {flowId: column.flowIds[k]})
ON CREATE SET
  flow.nodeId = column.nodeId,
  flow.applicationId = $applicationId,
  flow.hashIn = column.hashIns[k],
  flow.hashOut = coalesce(column.hashOuts[k], column.flowIds[k]),
  flow.val = column.vals[k],
  flow.file = column.files[k],
  flow.line = column.lines[k],
  flow.name = node.name,
  flow.description = node.description
ON MATCH SET
  flow.hashIn = coalesce(column.hashIns[k], flow.hashIn),
  flow.hashOut = coalesce(column.hashOuts[k], column.flowIds[k]),
  flow.val = coalesce(column.vals[k], flow.val),
  flow.file = coalesce(column.files[k], flow.file),
  flow.line = coalesce(column.lines[k], flow.line)
FOREACH (_ IN CASE WHEN column.flowIds[k] STARTS WITH column.nodeId + '#read#' THEN [1] ELSE [] END |
  SET flow:LineageSource)
FOREACH (_ IN CASE WHEN column.flowIds[k] STARTS WITH column.nodeId + '#write#' THEN [1] ELSE [] END |
  SET flow:LineageSink)
RETURN column.nodeId AS nodeId, collect(k) AS ks, collect(elementId(flow)) AS elementIds

// Purpose: which node sends its records to which, and into which of its inputs (ports: left 0, right 1).
//   Both ends stand already (node/upsert).
// Parameters: $targets, list of {nodeId, sources: list of {nodeId, ports}}
// Index: LineageNode(nodeId)
// Eager: none
UNWIND $targets AS row
MATCH (target:LineageNode {nodeId: row.nodeId})
UNWIND row.sources AS input
MATCH (source:LineageNode {nodeId: input.nodeId})
MERGE (source)-[link:sendsTo]->(target)
SET link.ports = COLLECT {
  UNWIND coalesce(link.ports, []) + input.ports AS port
  WITH DISTINCT port ORDER BY port
  RETURN port
}

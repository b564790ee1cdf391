// Purpose: which record became which, up to 5,000 pairs, grouped so that each target is sought once. Both
//   ends stand already (flow/upsert).
// Parameters: $targets, list of {flowId, sources: list of flowIds}
// Index: LineageFlow(flowId)
// Eager: none
UNWIND $targets AS row
MATCH (target:LineageFlow {flowId: row.flowId})
UNWIND row.sources AS flowId
MATCH (source:LineageFlow {flowId: flowId})
MERGE (source)-[:flow]->(target)

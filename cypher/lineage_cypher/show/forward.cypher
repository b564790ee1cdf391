// Purpose: a traced input row with all the records that it became.
// Parameters: $flowId
// Index: LineageFlow(flowId)
// Eager: none
MATCH (input:LineageFlow {flowId: $flowId})-[:flow*0..]->(record:LineageFlow)
WITH DISTINCT record LIMIT 1000
WITH collect(record) AS records
UNWIND records AS record
OPTIONAL MATCH (record)-[step:flow]->(next) WHERE next IN records
RETURN record, step, next

// Purpose: a traced output row with all the records that it came from.
// Parameters: $flowId
// Index: LineageFlow(flowId)
// Eager: none
MATCH (output:LineageFlow {flowId: $flowId})<-[:flow*0..]-(record:LineageFlow)
WITH DISTINCT record LIMIT 1000
WITH collect(record) AS records
UNWIND records AS record
OPTIONAL MATCH (record)-[step:flow]->(next) WHERE next IN records
RETURN record, step, next

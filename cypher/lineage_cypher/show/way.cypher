// Purpose: through which operations a record came, by name, and how many records of each it was made from. Also
//   where there are too many records to draw.
// Parameters: $flowId
// Index: LineageFlow(flowId)
// Eager: none
MATCH (output:LineageFlow {flowId: $flowId})<-[:flow*0..]-(record:LineageFlow)
WITH DISTINCT record
RETURN record.nodeId AS nodeId, record.name AS name, record.description AS description, count(*) AS records
ORDER BY nodeId

// Purpose: what one operation did on the way to an output row: the values that went in, and what came out of
//   each. For an application that ran with spark.lineage.detailed=true.
// Parameters: $flowId, $nodeId
// Index: LineageFlow(flowId)
// Eager: none
MATCH (output:LineageFlow {flowId: $flowId})<-[:flow*0..]-(after:LineageFlow)
WHERE after.nodeId = $nodeId
WITH DISTINCT after LIMIT 1000
MATCH (before:LineageFlow)-[:flow]->(after)
RETURN before.val AS wentIn, after.val AS cameOut, before.flowId AS flowId
ORDER BY cameOut, wentIn

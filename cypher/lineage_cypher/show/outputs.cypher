// Purpose: records that a node wrote, with how many input records each came from. For an application of which
//   all flows are in the graph.
// Parameters: $nodeId
// Index: LineageFlow(flowId)
// Eager: none
MATCH (output:LineageFlow)
WHERE output.flowId STARTS WITH $nodeId + '#'
WITH output LIMIT 20
RETURN output.flowId AS flowId, output.val AS val, COUNT {
  MATCH (output)<-[:flow*0..]-(input:LineageFlow)
  WHERE NOT EXISTS { (input)<-[:flow]-() }
  RETURN DISTINCT input
} AS inputs
ORDER BY inputs DESC

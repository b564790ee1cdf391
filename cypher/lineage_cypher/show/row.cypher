// Purpose: the records that are one row of a file, by the end of its name and the line, counted from 1.
// Parameters: $applicationId, $file, $line
// Index: LineageFlow(flowId)
// Eager: none
MATCH (flow:LineageFlow)
WHERE flow.flowId STARTS WITH $applicationId + '#' AND flow.line = $line AND flow.file ENDS WITH $file
RETURN flow.flowId AS flowId, flow.name AS name, flow.file AS file, flow.line AS line, flow.val AS val
LIMIT 100

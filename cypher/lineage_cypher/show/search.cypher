// Purpose: the records of an application whose value holds a text, and at which operation each is.
// Parameters: $applicationId, $text
// Index: LineageFlow(flowId)
// Eager: none
MATCH (flow:LineageFlow)
WHERE flow.flowId STARTS WITH $applicationId + '#' AND flow.val CONTAINS $text
RETURN flow.flowId AS flowId, flow.name AS name, flow.description AS description, flow.val AS val
LIMIT 100

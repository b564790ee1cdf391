// Purpose: delete up to $limit flows of an application; repeat while `changed` is $limit.
// Parameters: $applicationId, $limit
// Index: LineageFlow(flowId)
// Eager: none
MATCH (flow:LineageFlow)
WHERE flow.flowId STARTS WITH $applicationId + '#'
WITH flow LIMIT $limit
DETACH DELETE flow
RETURN count(*) AS changed

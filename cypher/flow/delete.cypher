// Purpose: delete up to $limit flows of an application; repeat while `changed` is $limit.
// Parameters: $applicationId, $limit
// Index: LineageFlow(applicationId, hashOut)
// Eager: none
MATCH (flow:LineageFlow)
WHERE flow.applicationId = $applicationId AND flow.hashOut IS NOT NULL
WITH flow LIMIT $limit
DETACH DELETE flow
RETURN count(*) AS changed

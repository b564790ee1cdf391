// Purpose: delete up to $limit nodes of an application; repeat while `changed` is $limit.
// Parameters: $applicationId, $limit
// Index: LineageNode(applicationId)
// Eager: none
MATCH (node:LineageNode {applicationId: $applicationId})
WITH node LIMIT $limit
DETACH DELETE node
RETURN count(*) AS changed

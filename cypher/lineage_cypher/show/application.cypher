// Purpose: the nodes of one application and what they send to each other.
// Parameters: $applicationId
// Index: LineageNode(applicationId)
// Eager: none
MATCH (node:LineageNode {applicationId: $applicationId})
OPTIONAL MATCH (node)-[link:sendsTo]->(target)
RETURN node, link, target

// Purpose: the nodes of the newest application and what they send to each other.
// Parameters: none
// Index: LineageNode(applicationId), reads every LineageApplication
// Eager: none
MATCH (application:LineageApplication)
WHERE application.started IS NOT NULL
WITH application ORDER BY application.started DESC LIMIT 1
MATCH (node:LineageNode {applicationId: application.applicationId})
OPTIONAL MATCH (node)-[link:sendsTo]->(target)
RETURN node, link, target

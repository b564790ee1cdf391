// Purpose: ended applications that were not checked yet with so large a budget of flows.
// Parameters: $maxFlows, $limit
// Index: LineageApplication(flowsBudget)
// Eager: none
MATCH (application:LineageApplication)
WHERE application.flowsBudget < $maxFlows
RETURN application.applicationId AS applicationId
LIMIT $limit

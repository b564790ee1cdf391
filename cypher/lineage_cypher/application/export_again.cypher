// Purpose: for people: put all flows of an application into the graph again, with the next look of a consumer
// Parameters: $applicationId
// Index: LineageApplication(applicationId)
// Eager: none
MATCH (application:LineageApplication {applicationId: $applicationId})
SET application.flowsBudget = -1

// Purpose: the last step of deleting an application.
// Parameters: $applicationId
// Index: LineageApplication(applicationId)
// Eager: none
MATCH (application:LineageApplication {applicationId: $applicationId})
DETACH DELETE application

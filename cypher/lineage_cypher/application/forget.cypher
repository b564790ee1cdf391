// Purpose: the first step of deleting an application: who was writing its flows has no claim any more.
// Parameters: $applicationId
// Index: LineageApplication(applicationId)
// Eager: none
MATCH (application:LineageApplication {applicationId: $applicationId})
REMOVE application.claimedBy, application.claimedUntil, application.linksWritten, application.flowsBudget

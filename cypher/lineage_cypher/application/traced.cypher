// Purpose: stands in each transaction that brings links of a trace: who writes all flows of the application
//   meanwhile is not the only one to have made links, and merges the rest of them.
// Parameters: $applicationId
// Index: LineageApplication(applicationId)
// Eager: none
MATCH (application:LineageApplication {applicationId: $applicationId})
REMOVE application.linksWritten

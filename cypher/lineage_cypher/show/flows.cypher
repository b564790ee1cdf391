// Purpose: which applications have all their flows in the graph, newest first, and how many.
// Parameters: none
// Index: none, reads every LineageApplication
// Eager: none
MATCH (application:LineageApplication)
WHERE application.flows IS NOT NULL
RETURN application.applicationId AS applicationId, application.name AS name, application.flows AS flows,
       application.flowRecords AS records, application.flowLinks AS links
ORDER BY application.ended DESC
LIMIT 100

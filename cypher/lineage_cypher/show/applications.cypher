// Purpose: the applications, newest first.
// Parameters: none
// Index: none, reads every LineageApplication
// Eager: none
MATCH (application:LineageApplication)
WHERE application.started IS NOT NULL
RETURN application.applicationId AS applicationId, application.name AS name, application.state AS state,
       datetime({epochMillis: application.started}) AS started
ORDER BY application.started DESC
LIMIT 100

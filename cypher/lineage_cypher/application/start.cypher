// Purpose: applications that started. Of several accounts of one start the highest revision stays.
// Parameters: $applications, list of {applicationId, properties with startRevision}
// Index: LineageApplication(applicationId)
// Eager: none
UNWIND $applications AS row
MERGE (application:LineageApplication {applicationId: row.applicationId})
ON CREATE SET application += row.properties, application.state = 'running'
ON MATCH SET
  application += CASE
    WHEN coalesce(application.startRevision, '') < row.properties.startRevision THEN row.properties
    ELSE {}
  END,
  application.state = CASE WHEN application.ended IS NULL THEN 'running' ELSE application.state END

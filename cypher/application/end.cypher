// Purpose: applications that ended, also when their start is told later. Of several accounts of one end the
//   highest revision stays.
// Parameters: $applications, list of {applicationId, properties with endRevision}
// Index: LineageApplication(applicationId)
// Eager: none
UNWIND $applications AS row
MERGE (application:LineageApplication {applicationId: row.applicationId})
ON CREATE SET application += row.properties, application.state = 'ended'
ON MATCH SET
  application += CASE
    WHEN coalesce(application.endRevision, '') < row.properties.endRevision THEN row.properties
    ELSE {}
  END,
  application.state = 'ended'

// Purpose: applications that ended, also when their start is reported later. Of several reports of one end the
//   highest revision stays. Whether the flows of one that ended are written is decided in application/pending.
// Parameters: $applications, list of {applicationId, properties with state and endRevision}
// Index: LineageApplication(applicationId)
// Eager: none
UNWIND $applications AS row
MERGE (application:LineageApplication {applicationId: row.applicationId})
ON CREATE SET
  application += row.properties,
  application.flows = 'not yet',
  application.flowsBudget = -1
ON MATCH SET
  application += CASE
    WHEN coalesce(application.endRevision, '') < row.properties.endRevision THEN row.properties
    ELSE {}
  END,
  application.flowsBudget = CASE WHEN application.flows IS NULL THEN -1 ELSE application.flowsBudget END,
  application.flows = coalesce(application.flows, 'not yet')

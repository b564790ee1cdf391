// Purpose: say how many links the holder of the claim has created, in the transaction that creates them: the
//   same batch again, because the answer to its commit was lost, is known by it.
// Parameters: $applicationId, $linksWritten
// Index: LineageApplication(applicationId)
// Eager: none
MATCH (application:LineageApplication {applicationId: $applicationId})
SET application.linksWritten = $linksWritten

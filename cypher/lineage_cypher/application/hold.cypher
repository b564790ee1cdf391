// Purpose: begin a transaction of the one who claimed the application, as application/lock does for others. No
//   row: the claim is lost, to a deletion or because it was not held in time. linksWritten is null when a trace
//   brought links since the claim.
// Parameters: $applicationId, $claim, $milliseconds
// Index: LineageApplication(applicationId)
// Eager: none
MATCH (application:LineageApplication {applicationId: $applicationId})
SET application.locked = true
REMOVE application.locked
WITH application
WHERE application.claimedBy = $claim
SET application.claimedUntil = timestamp() + $milliseconds
RETURN application.linksWritten AS linksWritten

// Purpose: take an application, to put its flows into the graph, unless someone has it or it is done. The claim
//   ends by itself, if its holder does not hold it any more (application/hold). No row: it cannot be had.
//   Locks first, and looks then. linksWritten: the links that were made since, all of them by the holder.
// Parameters: $applicationId, $maxFlows, $claim, $milliseconds
// Index: LineageApplication(applicationId)
// Eager: over one row: the end of another one's claim is read, and ours is written
MATCH (application:LineageApplication {applicationId: $applicationId})
SET application.locked = true
REMOVE application.locked
WITH application
WHERE application.flowsBudget < $maxFlows AND coalesce(application.claimedUntil, 0) < timestamp()
SET
  application.claimedBy = $claim,
  application.claimedUntil = timestamp() + $milliseconds,
  application.linksWritten = 0
RETURN application.applicationId AS applicationId

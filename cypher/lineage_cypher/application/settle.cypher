// Purpose: say what the graph has of the flows of an application: all, or what is asked for. Ends the claim;
//   application/hold stands before it in the transaction.
// Parameters: $applicationId, $flows, $flowRecords, $flowLinks, $flowsExact, $flowsBudget
// Index: LineageApplication(applicationId)
// Eager: none
MATCH (application:LineageApplication {applicationId: $applicationId})
SET
  application.flows = $flows,
  application.flowRecords = $flowRecords,
  application.flowLinks = $flowLinks,
  application.flowsExact = $flowsExact,
  application.flowsBudget = $flowsBudget
REMOVE application.claimedBy, application.claimedUntil, application.linksWritten

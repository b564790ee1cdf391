// Purpose: begin a transaction. Writers of one application take turns, so they never deadlock inside it.
//   Grouping the rows cannot promise that: a new relationship also locks its neighbours in the chains of
//   both its nodes. The property is the lock (Neo4j manual, Concurrent data access, lost updates).
// Parameters: $applicationIds, sorted: the same order in every transaction
// Index: LineageApplication(applicationId)
// Eager: none
UNWIND $applicationIds AS applicationId
MERGE (application:LineageApplication {applicationId: applicationId})
SET application.locked = true
REMOVE application.locked

// Purpose: the ended applications whose flows may still have to come into the graph.
// Parameters: none
// Index: makes LineageApplication(flowsBudget)
// Eager: none
CREATE INDEX lineage_application_flows IF NOT EXISTS
FOR (application:LineageApplication) ON (application.flowsBudget)

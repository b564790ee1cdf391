// Purpose: one LineageApplication for each application, however its events come.
// Parameters: none
// Index: makes LineageApplication(applicationId)
// Eager: none
CREATE CONSTRAINT lineage_application_id IF NOT EXISTS
FOR (application:LineageApplication) REQUIRE application.applicationId IS UNIQUE

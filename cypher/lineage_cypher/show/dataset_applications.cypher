// Purpose: which applications read or wrote a dataset, the newest first.
// Parameters: $namespace, such as file or s3://bucket; $dataset, the name
// Index: Dataset(namespace, name), LineageApplication(applicationId)
// Eager: none
MATCH (dataset:Dataset {namespace: $namespace, name: $dataset})<-[link:reads|writes]-(node:LineageNode)
WITH link, node LIMIT 10000
MATCH (application:LineageApplication {applicationId: node.applicationId})
RETURN type(link) AS did, application.applicationId AS applicationId, application.name AS name,
       node.nodeId AS nodeId, node.name AS operation, node.records AS records,
       datetime({epochMillis: application.started}) AS started
ORDER BY application.started DESC
LIMIT 100

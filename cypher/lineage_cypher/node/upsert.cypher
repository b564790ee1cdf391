// Purpose: every node that events speak of. One that is only linked or counted so far is a placeholder and
//   has empty properties. Of several accounts of one node the highest revision stays.
// Parameters: $nodes, list of {nodeId, applicationId, node, properties with revision, or {}}
// Index: LineageNode(nodeId)
// Eager: none
UNWIND $nodes AS row
MERGE (node:LineageNode {nodeId: row.nodeId})
ON CREATE SET node += row.properties, node.applicationId = row.applicationId, node.node = row.node
ON MATCH SET
  node += CASE
    WHEN coalesce(node.revision, '') < coalesce(row.properties.revision, '') THEN row.properties
    ELSE {}
  END

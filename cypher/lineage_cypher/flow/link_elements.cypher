// Purpose: as flow/link, by the elements that flow/create or flow/upsert said in a transaction before.
//   application/hold stands before it in the transaction: as long as the claim is held nothing of the
//   application was deleted, so an element is still what it was. Half the work of two searches by flowId.
// Parameters: $targets, $sources, lists of element ids, equally long
// Index: none, elements are found by their place in the store
// Eager: none
UNWIND range(0, size($targets) - 1) AS k
MATCH (target:LineageFlow) WHERE elementId(target) = $targets[k]
UNWIND [$sources[k]] AS elementId
MATCH (source:LineageFlow) WHERE elementId(source) = elementId
MERGE (source)-[:flow]->(target)

// Purpose: as flow/link_elements, for links of which none is there yet: a fifth less work for the server, which
//   need not look along the links of both ends. No constraint would refuse a second one, so application/hold
//   before it in the transaction has said linksWritten, and application/advance after it counts them.
// Parameters: $targets, $sources, lists of element ids, equally long
// Index: none, elements are found by their place in the store
// Eager: none
UNWIND range(0, size($targets) - 1) AS k
MATCH (target:LineageFlow) WHERE elementId(target) = $targets[k]
UNWIND [$sources[k]] AS elementId
MATCH (source:LineageFlow) WHERE elementId(source) = elementId
CREATE (source)-[:flow]->(target)

"""Why an operation has no record with a key, in memory."""

from __future__ import annotations

from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import Absence, KeyedOperation, KeyHolder, Node
from lineage_service.queries import AbsenceQuery
from lineage_service.testing.memory.lineages import LineageIndex, hash_of
from lineage_service.testing.memory.missing_rows import what_became
from lineage_service.testing.memory.row_sets import nodes_behind

__all__ = ["absence_of"]


def absence_of(index: LineageIndex, query: AbsenceQuery) -> Absence:
    """Raises InvalidQueryError."""
    asked, application = index.node(query.node), index.lineage.application
    graph = index.lineage.graph
    before = nodes_behind(graph, {asked.node_id})
    keys = {
        node_id: [record for record in index.of_node(node) if record.key is not None]
        for node_id, node in index.nodes.items()
        if node_id in before
    }
    with_key = {
        node_id for node_id, records in keys.items() if any(record.key == query.key for record in records)
    }
    if asked.node_id in with_key:
        raise InvalidQueryError(
            f"node {asked.node} ({asked.name}) has records with the key {query.key!r}: explain these"
        )
    last = [
        one for one in with_key if not any(one in nodes_behind(graph, {other}) for other in with_key - {one})
    ]
    holders = []
    for node in sorted((index.nodes[node_id] for node_id in last), key=lambda node: node.node):
        records = [record for record in keys[node.node_id] if record.key == query.key]
        ended = [
            row
            for record in records[: query.limit]
            for row in what_became(
                graph, index.records, index.outputs, hash_of(node.node_id, record.record_id), [asked]
            )[0]
        ]
        holders.append(
            KeyHolder(
                **_about(node),
                total=len(records),
                records=tuple(records[: query.limit]),
                ended=tuple(ended),
                other_sides=(),
                became=(),
                became_total=0,
            )
        )
    without = [
        index.nodes[node_id] for node_id, records in keys.items() if records and node_id not in with_key
    ]
    return Absence(
        application_id=application.application_id,
        name=application.name,
        asked=_operation(asked),
        key=query.key,
        holders=tuple(holders),
        without=tuple(map(_operation, sorted(without, key=lambda node: node.node))),
        exact=bool(holders),
        complete=application.complete,
        reasons=() if holders else ("There is no operation before it that has the key.",),
    )


def _about(node: Node) -> dict[str, str]:
    return {"node_id": node.node_id, "name": node.name, "call_site": node.call_site}


def _operation(node: Node) -> KeyedOperation:
    return KeyedOperation(**_about(node))

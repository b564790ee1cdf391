"""Which records a trace begins at, and which ones it reaches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lineage_service.errors import InvalidQueryError, NotFoundError
from lineage_service.lineage import Direction, Graph, Node, Record, TraceStart
from lineage_service.queries import TraceQuery
from lineage_service.testing.memory.lineages import LineageIndex
from lineage_service.testing.memory.rows import fulfilling, rows_of, with_columns
from lineage_service.tracing.files.file_nodes import FileHolder, nodes_meant


def start_of(index: LineageIndex, query: TraceQuery) -> tuple[Node, list[str]]:
    """The node and the hashes of the records that the query begins at."""
    hashes = [hash_ for hash_, (node, record) in index.records.items() if _begins(index, query, node, record)]
    if query.where is not None:
        kind = "sink" if query.direction == "backward" else "source"
        hashes = rows_of(index, query.path, query.node)
        hashes = [hash_ for hash_ in hashes if query.node or index.records[hash_][0].kind == kind]
        hashes = fulfilling(index, hashes, query.where)
    if not hashes:
        raise NotFoundError("there is no such record")
    if query.path is not None:
        nodes = (index.records[hash_][0] for hash_ in hashes)
        meant = nodes_meant({node.node: FileHolder(node.kind) for node in nodes}, query.direction)
        meant = meant[:1] if query.direction == "backward" else meant
        hashes = [hash_ for hash_ in hashes if index.records[hash_][0].node in meant]
        return index.node(str(meant[0])), hashes
    node_ids = {index.records[hash_][0].node_id for hash_ in hashes}
    if len(node_ids) > 1:
        raise InvalidQueryError(
            f"the record is in several nodes ({', '.join(sorted(node_ids))}): say which node"
        )
    return index.nodes[node_ids.pop()], hashes


def trace_starts(
    index: LineageIndex, start_node: Node, start: Sequence[str], query: TraceQuery
) -> Iterator[TraceStart]:
    """The nodes of the records `start`, `start_node` first."""
    by_node: dict[str, list[Record]] = {start_node.node_id: []}
    for node, record in (index.records[hash_] for hash_ in start):
        by_node.setdefault(node.node_id, []).append(record)
    for node_id, records in by_node.items():
        node = index.nodes[node_id]
        yield TraceStart(
            node_id=node_id,
            application_id=index.lineage.application.application_id,
            application_name=index.lineage.application.name,
            name=node.name,
            kind=node.kind,
            total=len(records),
            records=with_columns(records[: query.limit], query.columns),
        )


def _begins(index: LineageIndex, query: TraceQuery, node: Node, record: Record) -> bool:
    if query.node is not None and index.node(query.node) is not node:
        return False
    if query.record is not None:
        names = ("", f"{node.node}#", f"{node.node_id}#")
        return query.record in (f"{name}{record.record_id}" for name in names)
    if query.path is not None:
        source = record.source
        return source is not None and (source.path, source.row) == (query.path, query.row)
    if query.key is not None:
        return record.key == query.key
    return (record.partition, record.offset) == (query.partition, query.offset)


def reach(
    index: LineageIndex, start_node: Node, start: list[str], query: TraceQuery, to: Node | None
) -> tuple[list[Node], dict[str, set[str]]]:
    """The nodes of the trace, the start's first, and the hashes that were reached at each.

    With `to`, only what lies between the start and that node stays: it is what the start reaches and what
    reaches a record of `to` in turn.
    """
    seen = _spread(index, set(start), query.direction, query.depth)
    if to is not None:
        goal = {hash_ for hash_ in seen if index.records[hash_][0] is to}
        back: Direction = "forward" if query.direction == "backward" else "backward"
        seen &= _spread(index, goal, back, None) | set(start)
    reached: dict[str, set[str]] = {start_node.node_id: set()}
    for hash_ in seen:
        reached.setdefault(index.records[hash_][0].node_id, set()).add(hash_)
    order = topological(index.lineage.graph)
    if query.direction == "backward":
        order.reverse()
    return [index.nodes[node_id] for node_id in order if node_id in reached], reached


def _spread(index: LineageIndex, start: set[str], direction: Direction, depth: int | None) -> set[str]:
    """All hashes within `depth` flows of the start, the start among them."""
    seen, frontier = set(start), set(start)
    while frontier and (depth is None or depth > 0):
        if direction == "backward":
            frontier = {flow.hash_in for hash_ in frontier for flow in index.inputs.get(hash_, ())}
        else:
            frontier = {flow.hash_out for hash_ in frontier for flow in index.outputs.get(hash_, ())}
        frontier -= seen
        seen |= frontier
        depth = None if depth is None else depth - 1
    return seen


def topological(graph: Graph) -> list[str]:
    """Node ids, each after all that send records to it; in the graph's order otherwise."""
    waiting = {node.node_id: 0 for node in graph.nodes}
    for edge in graph.edges:
        waiting[edge.target] += 1
    order: list[str] = []
    while waiting:
        ready = [node_id for node_id, count in waiting.items() if count == 0]
        if not ready:
            raise ValueError(f"the graph of {graph.application_id} has a cycle")
        for node_id in ready:
            del waiting[node_id]
            for edge in graph.edges:
                if edge.source == node_id:
                    waiting[edge.target] -= 1
        order += ready
    return order

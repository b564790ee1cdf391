"""Row sets, in memory: the records that a trace reached at each source."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict

from lineage_service.lineage import (
    AskedRecord,
    Graph,
    Node,
    Record,
    RowSet,
    RowSetFile,
    RowSetSource,
    RowSetSplit,
)
from lineage_service.queries import RowSetQuery, TraceQuery
from lineage_service.testing.memory.decisions import decisive
from lineage_service.testing.memory.failures import with_record_of_failure
from lineage_service.testing.memory.lineages import LineageIndex, hash_of, position_of
from lineage_service.testing.memory.reach import start_of, topological
from spark_agent.contract.row_sets import ranges_of

__all__ = ["nodes_behind", "origins", "row_set_of", "starts_of"]


def starts_of(index: LineageIndex, query: TraceQuery) -> tuple[Node, list[str]]:
    """The node of the first start, and the records of all."""
    if not query.starts:
        return start_of(index, with_record_of_failure(index.lineage, query))
    hashes: dict[str, None] = {}
    first: Node | None = None
    for start in query.starts or ():
        one = TraceQuery(direction=query.direction, **asdict(start))
        node, of_one = start_of(index, with_record_of_failure(index.lineage, one))
        first = first or node
        hashes |= dict.fromkeys(of_one)
    assert first is not None
    return first, list(hashes)


def row_set_of(index: LineageIndex, query: RowSetQuery) -> RowSet:
    """Of the records that the starts reach by flows, or by those of them that decided."""
    _, starts = starts_of(index, TraceQuery(direction="backward", starts=query.starts))
    seen = decisive(index, starts) if query.concise else origins(index, starts)
    behind = nodes_behind(index.lineage.graph, {index.records[start][0].node_id for start in starts})
    application = index.lineage.application
    sources = [index.nodes[name] for name in topological(index.lineage.graph)]
    return RowSet(
        application=application.application_id,
        sources=tuple(
            _source(index, node, seen, query.limit, is_behind=node.node_id in behind)
            for node in sorted(sources, key=lambda node: node.node)
            if node.kind == "source"
        ),
        asked=tuple(_asked(index, sorted(starts, key=lambda start: position_of(index, start)))),
        exact=all(index.records[hash_][0].exact for hash_ in seen),
        complete=application.complete,
        how=None,
    )


def origins(index: LineageIndex, starts: Iterable[str]) -> set[str]:
    seen, frontier = set(starts), set(starts)
    while frontier:
        frontier = {flow.hash_in for hash_ in frontier for flow in index.inputs.get(hash_, ())} - seen
        seen |= frontier
    return seen


def nodes_behind(graph: Graph, node_ids: set[str]) -> set[str]:
    seen, frontier = set(node_ids), set(node_ids)
    while frontier:
        frontier = {edge.source for edge in graph.edges if edge.target in frontier} - seen
        seen |= frontier
    return seen


def _source(
    index: LineageIndex, node: Node, seen: Collection[str], limit: int, *, is_behind: bool
) -> RowSetSource:
    records = [record for record in index.of_node(node) if hash_of(node.node_id, record.record_id) in seen]
    splits: dict[int, list[int]] = defaultdict(list)
    for record in records:
        splits[record.partition].append(record.offset)
    return RowSetSource(
        node=node.node,
        name=node.name,
        call_site=node.call_site or None,
        path=node.description or None,
        whole=not is_behind,
        why=None if is_behind else "no record of it can have become one that was asked for",
        partitions=None,
        total=node.records,
        files=tuple(_files(records)) if is_behind else (),
        splits=tuple(
            RowSetSplit(split=split, positions=_ranges(offsets)) for split, offsets in sorted(splits.items())
        )
        if is_behind
        else (),
        listed=tuple(record.source for record in records[:limit] if record.source is not None),
    )


def _files(records: Iterable[Record]) -> Iterator[RowSetFile]:
    rows: dict[str, list[int]] = defaultdict(list)
    for record in records:
        if record.source is not None:
            rows[record.source.path].append(record.source.row)
    for path, numbers in rows.items():
        yield RowSetFile(path=path, size=None, modified=None, rows=_ranges(numbers))


def _ranges(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    return tuple((first, count) for first, count in ranges_of(numbers))


def _asked(index: LineageIndex, starts: Iterable[str]) -> Iterator[AskedRecord]:
    for start in starts:
        node, record = index.records[start]
        row = record.source
        yield AskedRecord(
            node=node.node,
            record_id=record.record_id,
            path=None if row is None else row.path,
            row=None if row is None else row.row,
            text=None if row is None else row.text,
            key=record.key,
        )

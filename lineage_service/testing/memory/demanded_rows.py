"""Rows that explanations must have, in memory: found among all that a start was made of, breadth first."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import DemandedRow, WayRecord
from lineage_service.queries import ExplanationQuery, TraceQuery
from lineage_service.testing.memory.lineages import LineageIndex
from lineage_service.testing.memory.row_sets import starts_of

__all__ = ["demanded_rows", "joined_with"]


def demanded_rows(
    index: LineageIndex, query: ExplanationQuery, starts: Collection[str]
) -> tuple[DemandedRow, ...]:
    """Raises InvalidQueryError, NotFoundError."""
    rows = []
    for hash_ in _demanded(index, query):
        node, record = index.records[hash_]
        way = _way(index, hash_, starts)
        row = record.source
        rows.append(
            DemandedRow(
                node_id=node.node_id,
                name=node.name,
                record_id=record.record_id,
                path=None if row is None else row.path,
                row=None if row is None else row.row,
                line=None if row is None else row.line,
                text=record.key if row is None else row.text,
                warning=None if row is None else row.warning,
                in_trace=bool(way),
                exact=True,
                way=tuple(_steps(index, way)),
                note="" if way else "It is no part of the trace: these records were not made of it.",
            )
        )
    return tuple(rows)


def joined_with(index: LineageIndex, query: ExplanationQuery, starts: Collection[str]) -> set[str]:
    """The demanded rows that lead to a start, and what else their ways were made of."""
    joined: set[str] = set()
    for hash_ in _demanded(index, query):
        way = _way(index, hash_, starts)
        joined |= set(way[:1])
        for output in way[1:]:
            if output not in index.lineage.winners:
                joined |= {flow.hash_in for flow in index.inputs.get(output, ())} - set(way)
    return joined


def _demanded(index: LineageIndex, query: ExplanationQuery) -> Iterator[str]:
    for start in query.demanded:
        node, hashes = starts_of(index, TraceQuery(direction="forward", starts=(start,)))
        if node.kind != "source":
            raise InvalidQueryError(f"with names rows of inputs, and node {node.node} ({node.name}) is none")
        yield from hashes


def _way(index: LineageIndex, row: str, starts: Collection[str]) -> Sequence[str]:
    """From the row to a start; empty if there is none."""
    ways = {row: [row]}
    layer = [row]
    while layer:
        for hash_ in layer:
            if hash_ in starts:
                return ways[hash_]
        following = [flow for hash_ in layer for flow in index.outputs.get(hash_, ())]
        layer = []
        for flow in following:
            if flow.hash_out not in ways:
                ways[flow.hash_out] = [*ways[flow.hash_in], flow.hash_out]
                layer.append(flow.hash_out)
    return []


def _steps(index: LineageIndex, way: Sequence[str]) -> Iterator[WayRecord]:
    for hash_ in way:
        node, record = index.records[hash_]
        turn = next((turn for turn in index.lineage.turns if turn.node_id == node.node_id), None)
        yield WayRecord(
            node_id=node.node_id,
            name=node.name,
            loop=None if turn is None else turn.loop,
            turn=None if turn is None else turn.turn,
            record=record,
        )

"""Explanations, in memory: a trace that goes on only by the winner of a record that has one."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from lineage_service.lineage import (
    ExplainedRow,
    Explanation,
    ExplanationRule,
    ExplanationTurn,
    GivenValues,
    MeetingSide,
    Node,
    Record,
    Verification,
)
from lineage_service.queries import ExplanationQuery, TraceQuery
from lineage_service.testing.memory.decisions import decisive
from lineage_service.testing.memory.demanded_rows import demanded_rows, joined_with
from lineage_service.testing.memory.derivations import how_of
from lineage_service.testing.memory.lineages import LineageIndex, hash_of, skipped
from lineage_service.testing.memory.meetings import ExplainedPair
from lineage_service.testing.memory.reach import trace_starts
from lineage_service.testing.memory.row_sets import nodes_behind, origins, starts_of

__all__ = ["explanation_of"]

_NO_WINNERS = "Nothing was captured that says which rows decided."


def explanation_of(index: LineageIndex, query: ExplanationQuery) -> Explanation:
    """Of the records that the starts reach by winners where there are some, else by flows."""
    lineage = index.lineage
    application = lineage.application
    trace = TraceQuery(direction="backward", starts=query.starts, limit=query.limit)
    start_node, starts = starts_of(index, trace)
    pair = ExplainedPair.of(index, query) if query.same else None
    demanded = joined_with(index, query, starts) if query.demanded else set()
    seen, is_first = decisive(index, {*starts, *demanded}), query.cursor is None
    behind = nodes_behind(lineage.graph, {index.records[start][0].node_id for start in starts})
    sources = sorted(
        (node for node in index.nodes.values() if node.kind == "source"), key=lambda node: node.node
    )
    rows = [(node, record) for node, record in _of_sources(index, sources) if _hash(node, record) in seen]
    first = skipped(query.cursor)
    counts = [node.records for node in sources if node.node_id in behind]
    exact = all(index.records[hash_][0].exact for hash_ in seen)
    checks = () if query.demanded else lineage.checks
    of_these = next((check for check in checks if check.these_rows), None)
    verified = None
    if of_these is not None:
        verified = Verification(runs=of_these.runs, added=of_these.added_total, minimal=of_these.minimal)
    return Explanation(
        kind="verified" if of_these else "concise" if exact and lineage.winners else "bound",
        application_id=application.application_id,
        name=application.name,
        starts=tuple(trace_starts(index, start_node, starts, trace)),
        rows=tuple(
            replace(
                _row(node, record, None if pair is None else pair.holders(_hash(node, record))),
                demanded=True if _hash(node, record) in demanded else None,
            )
            for node, record in rows[first : first + query.limit]
        ),
        total=len(rows),
        of=None if None in counts else sum(count or 0 for count in counts),
        plain_total=_sources_in(index, starts) if query.plain and is_first else None,
        turns=tuple(_listed(turn, query.limit) for turn in lineage.turns) if is_first else (),
        rules=tuple(_rules(index, seen)) if is_first else (),
        given_values=tuple(
            GivenValues(
                node_id=node.node_id,
                name=node.name,
                call_site=node.call_site,
                path=node.description or None,
            )
            for node in sources
            if node.node_id not in behind
        ),
        exact=exact,
        complete=application.complete,
        verified=verified,
        checks=checks if is_first else (),
        reasons=() if lineage.winners else (_NO_WINNERS,),
        next=str(first + query.limit) if first + query.limit < len(rows) else None,
        demanded=demanded_rows(index, query, starts) if query.demanded and is_first else None,
        **(how_of(index, starts) if query.how and is_first else {}),
        same=pair.meeting(query.limit) if pair is not None and is_first else None,
    )


def _sources_in(index: LineageIndex, starts: Collection[str]) -> int:
    """The input records of a plain trace."""
    return sum(index.records[hash_][0].kind == "source" for hash_ in origins(index, starts))


def _of_sources(index: LineageIndex, sources: Collection[Node]) -> Iterator[tuple[Node, Record]]:
    for node in sources:
        yield from ((node, record) for record in index.of_node(node))


def _hash(node: Node, record: Record) -> str:
    return hash_of(node.node_id, record.record_id)


def _row(node: Node, record: Record, counts_for: tuple[MeetingSide, ...] | None) -> ExplainedRow:
    row = record.source
    return ExplainedRow(
        node_id=node.node_id,
        name=node.name,
        record_id=record.record_id,
        path=None if row is None else row.path,
        row=None if row is None else row.row,
        line=None if row is None else row.line,
        text=record.key if row is None else row.text,
        warning=None if row is None else row.warning,
        counts_for=counts_for,
    )


def _listed(turn: ExplanationTurn, limit: int) -> ExplanationTurn:
    return replace(turn, records=turn.records[:limit], until=turn.until[:limit], rows=turn.rows[:limit])


def _rules(index: LineageIndex, seen: Collection[str]) -> Iterator[ExplanationRule]:
    merged: dict[str, list[str]] = {}
    for hash_ in seen:
        if hash_ in index.lineage.winners:
            merged.setdefault(index.records[hash_][0].node_id, []).append(hash_)
    for node in sorted(map(index.nodes.__getitem__, merged), key=lambda node: node.node):
        hashes = merged[node.node_id]
        yield ExplanationRule(
            node_id=node.node_id,
            name=node.name,
            call_site=node.call_site,
            rule="winner",
            kept=len({index.lineage.winners[hash_] for hash_ in hashes}),
            of=len({flow.hash_in for hash_ in hashes for flow in index.inputs.get(hash_, ())}),
        )

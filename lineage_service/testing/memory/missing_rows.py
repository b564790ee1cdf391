"""What became of rows, in memory: each record of the lineage is looked at for what it went into.

Where nothing came of it at an operation on the way to a sink, it ended there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lineage_service.lineage import (
    Flow,
    Graph,
    MissedOutput,
    MissingRow,
    Node,
    ReachedRow,
    Record,
    RowEnd,
)

__all__ = ["sinks_of", "what_became"]

Records = Mapping[str, tuple[Node, Record]]
"""By NODE_ID#RECORD_ID."""


def what_became(
    graph: Graph,
    records: Records,
    outputs: Mapping[str, Sequence[Flow]],
    start: str,
    sinks: Sequence[Node],
) -> tuple[list[MissingRow], ReachedRow | None]:
    """The ends of one record on its way to sinks, and those that it went into."""
    seen = _spread(outputs, start)
    by_node: dict[str, set[str]] = {}
    for name in seen:
        by_node.setdefault(records[name][0].node_id, set()).add(name)
    passed = [sink for sink in sinks if sink.node_id in by_node]
    rows = [
        row
        for sink in sinks
        if sink not in passed
        for row in _ends(graph, records, outputs, start, by_node, sink)
    ]
    reached = ReachedRow(**_row(records, start), outputs=tuple(map(_output, passed))) if passed else None
    return rows, reached


def sinks_of(graph: Graph, node_id: str) -> list[Node]:
    """The sinks that records of a node may go into."""
    behind = _closure(graph, node_id)
    return [node for node in graph.nodes if node.kind == "sink" and node.node_id in behind]


def _ends(
    graph: Graph,
    records: Records,
    outputs: Mapping[str, Sequence[Flow]],
    start: str,
    by_node: Mapping[str, set[str]],
    sink: Node,
) -> Iterator[MissingRow]:
    nodes = {node.node_id: node for node in graph.nodes}
    on_way = {name for name in nodes if sink.node_id in {name, *_closure(graph, name)}}
    for edge in graph.edges:
        if edge.target not in on_way:
            continue
        ended = [
            name
            for name in sorted(by_node.get(edge.source, ()))
            if not any(flow.node_id == edge.target for flow in outputs.get(name, ()))
        ]
        if not ended:
            continue
        node = nodes[edge.target]
        yield MissingRow(
            **_row(records, start),
            ended=RowEnd(
                node_id=node.node_id,
                name=node.name,
                description=node.description,
                call_site=node.call_site,
                why=f"{node.name}: it gave nothing for it",
            ),
            candidates=(),
            last=tuple(records[name][1] for name in ended[:5]),
            last_node_id=edge.source,
            last_total=len(ended),
            outputs=(_output(sink),),
            exact=True,
            reason="",
        )


def _spread(outputs: Mapping[str, Sequence[Flow]], start: str) -> set[str]:
    seen, stack = {start}, [start]
    while stack:
        for flow in outputs.get(stack.pop(), ()):
            if flow.hash_out not in seen:
                seen.add(flow.hash_out)
                stack.append(flow.hash_out)
    return seen


def _closure(graph: Graph, node_id: str) -> set[str]:
    seen, stack = set[str](), [node_id]
    while stack:
        at = stack.pop()
        for edge in graph.edges:
            if edge.source == at and edge.target not in seen:
                seen.add(edge.target)
                stack.append(edge.target)
    return seen


def _row(records: Records, name: str) -> dict[str, Any]:
    node, record = records[name]
    source = record.source
    return {
        "application_id": node.node_id.rpartition("#")[0],
        "node_id": node.node_id,
        "record_id": record.record_id,
        "path": None if source is None else source.path,
        "row": None if source is None else source.row,
        "line": None if source is None else source.line,
        "text": record.value if source is None else source.text,
        "columns": None if source is None else {"value": source.text},
    }


def _output(node: Node) -> MissedOutput:
    return MissedOutput(
        node_id=node.node_id, name=node.name, description=node.description, call_site=node.call_site
    )

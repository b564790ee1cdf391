"""What is before the records of a node in the graph, and whether other rows may matter to them. Pure."""

from __future__ import annotations

from collections import defaultdict

from lineage_service.lineage import Graph, Node
from spark_agent.contract import whole_groups
from spark_agent.contract.record_groups import REORDERING

__all__ = ["chosen_before", "sources_before", "why_others_count"]

#: Actions that give the program some records: without another one these are the same.
_CHOOSING = frozenset(("first", "take", "takeOrdered", "top"))


def why_others_count(graph: Graph, node: int, *, most_groupings: int = 1) -> str:
    """Why rows that are not in the lineage of its records may matter; empty where they do not."""
    before = _before(graph)
    operations = (
        whole_groups.Operation(
            node_id=of.node_id,
            kind=of.kind,
            name=of.name,
            description=of.description,
            call_site=of.call_site,
            exact=of.exact,
            parents=[parent.node_id for parent in before[of.node_id]],
        )
        for of in _on_the_way(graph, node)
    )
    return whole_groups.why_others_count(operations, most_groupings=most_groupings)


def sources_before(graph: Graph, node: int) -> set[int]:
    """The sources whose records may become those of a node."""
    return {of.node for of in _on_the_way(graph, node) if of.kind == "source"}


def chosen_before(graph: Graph, sink: int) -> list[Node]:
    """The actions before a sink that gave the program some records, the same ones without any other row."""
    return [
        node
        for node in graph.nodes
        if node.kind == "sink"
        and node.name in _CHOOSING
        and node.node < sink
        and not why_others_count(graph, node.node, most_groupings=0)
        and not any(of.name in REORDERING for of in _on_the_way(graph, node.node))
    ]


def _before(graph: Graph) -> dict[str, list[Node]]:
    by_id = {of.node_id: of for of in graph.nodes}
    before: dict[str, list[Node]] = defaultdict(list)
    for edge in graph.edges:
        if edge.source in by_id:
            before[edge.target].append(by_id[edge.source])
    return before


def _on_the_way(graph: Graph, node: int) -> list[Node]:
    """A node and all before it, the sources first."""
    before = _before(graph)
    seen = {of.node_id: of for of in graph.nodes if of.node == node}
    pending = list(seen)
    while pending:
        for of in before[pending.pop()]:
            if of.node_id not in seen:
                seen[of.node_id] = of
                pending.append(of.node_id)
    return sorted(seen.values(), key=lambda of: of.node)

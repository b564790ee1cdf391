"""The edges of an application's graph: who reads whom, how much went that way, and where it changed tasks.

Counts are those of task runs and receipts of blocks. Only where these do not say how many outputs there
were, the last flows of a run are looked at. So a graph costs little.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lineage_service.tracing.model.lineage_graph import LineageGraph
from lineage_service.tracing.model.plan_edges import PlanEdges
from lineage_service.tracing.model.topology import shuffled_nodes
from spark_agent import contract

__all__ = ["PublicEdge", "counts", "public_edges", "record_count"]


@dataclass(frozen=True, slots=True)
class PublicEdge:
    """Between two public nodes, by their numbers. `flows` is None where they are not counted.

    `is_shuffle`: records move between tasks on the way.
    """

    source: int
    target: int
    flows: int | None
    is_shuffle: bool


def public_edges(graph: LineageGraph) -> list[PublicEdge]:
    """Through internal nodes, in order. What goes into the first one after a node is what leaves the node."""
    plans, shuffled, nodes = PlanEdges(graph), shuffled_nodes(graph.topology), graph.topology.nodes
    edges: dict[tuple[int, int], tuple[int, bool]] = {}
    for target in nodes.values():
        if not target.is_public:
            continue
        stack = [(parent, target.number, target.number in shuffled) for parent in target.parents]
        seen = set()
        while stack:
            number, reader, is_shuffle = stack.pop()
            if number not in nodes or (number, reader, is_shuffle) in seen:
                continue
            seen.add((number, reader, is_shuffle))
            if nodes[number].is_public:
                edge = edges.get((number, target.number), (reader, False))
                edges[number, target.number] = edge[0], edge[1] or is_shuffle
            else:
                is_shuffle = is_shuffle or number in shuffled
                stack.extend((parent, number, is_shuffle) for parent in nodes[number].parents)
    return [
        PublicEdge(
            source,
            target,
            _count(graph, plans, source, reader),
            is_shuffle or (source, target) in plans.shuffles,
        )
        for (source, target), (reader, is_shuffle) in sorted(edges.items())
    ]


def counts(graph: LineageGraph) -> tuple[Mapping[int, int], Mapping[tuple[int, int], int]]:
    """(records of each node, flows from node to node), internal nodes among them, where they are counted."""
    plans, nodes = PlanEdges(graph), graph.topology.nodes
    records = {number: count for number in nodes if (count := record_count(graph, number)) is not None}
    flows = {
        (parent, number): count
        for number, node in nodes.items()
        for parent in dict.fromkeys(node.parents)
        if parent in nodes and (count := _count(graph, plans, parent, number)) is not None
    }
    return records, flows


def record_count(graph: LineageGraph, node: int) -> int | None:
    """How many records a node has; None where it has none of its own, or they are not counted (groups)."""
    if graph.topology.nodes[node].relation in (contract.CARRIED, contract.KEYED):
        return None
    return sum(graph.count(node, run.number) for run in graph.holders(node))


def _count(graph: LineageGraph, plans: PlanEdges, source: int, reader: int) -> int | None:
    if reader in plans:
        return plans.rows.get((source, reader))
    node = graph.topology.nodes[reader]
    if node.relation == contract.STATIC and len(set(node.parents)) > 1:  # its flows are those of all
        runs = {run.number for run in graph.holders(reader)}
        links = [link for link in graph.links_of.get(reader, ()) if link.run in runs]
        return sum(link.count for link in links if link.parent_node == source)
    return graph.count_flows(reader)

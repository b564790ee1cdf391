"""Do the rows of a record's lineage alone, without one of them, give what all rows without it give? Pure.

They do where each group that they are in is there as a whole: of operations that take records one by one, and
of one grouping on each way. A group behind another one may be there in part, since rows are in several. Then
it can pass a filter that it never passed. A row of an outer join has one match in its lineage, and not the
others. Whatever is not known may look at other rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from lineage_service.lineage import Graph, Node
from spark_agent.contract.record_groups import NARROW, REORDERING, UNIONS, is_grouping

__all__ = ["chosen_before", "sources_before", "why_others_count"]

#: Actions that give the program some records: without another one these are the same.
_CHOOSING = frozenset(("first", "take", "takeOrdered", "top"))


def why_others_count(graph: Graph, node: int, *, most_groupings: int = 1) -> str:
    """Why rows that are not in the lineage of its records may matter; empty where they do not."""
    before = _before(graph)
    groupings: dict[str, int] = {}
    for of in _on_the_way(graph, node):
        parents = before[of.node_id]
        if of.kind == "operator" and not (of.exact and _is_known(of, parents)):
            return f"{_in_words(of)} may look at rows that are not in its lineage"
        groupings[of.node_id] = _groupings(of, parents, groupings)
        if groupings[of.node_id] > most_groupings:
            return f"{_in_words(of)} groups what was grouped before, of which only a part is in its lineage"
    return ""


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


def _is_known(node: Node, parents: Sequence[Node]) -> bool:
    if node.name in NARROW:
        return len(parents) == 1 or node.name in UNIONS
    return is_grouping(node.name, node.description)


def _groupings(node: Node, parents: Sequence[Node], groupings: Mapping[str, int]) -> int:
    """On the way to it with the most."""
    before = max((groupings.get(parent.node_id, 0) for parent in parents), default=0)
    return before + is_grouping(node.name, node.description)


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


def _in_words(node: Node) -> str:
    return f"{node.name} ({node.call_site.rpartition('/')[2]})"

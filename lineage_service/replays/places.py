"""Operations whose outputs depend on the places of records, not on the records alone. Pure.

With fewer rows the same record has another place there. So such an application is run again on all rows.
"""

from __future__ import annotations

from collections.abc import Iterable

from lineage_service.lineage import Graph, Node

__all__ = ["depends_on_places"]

_BY_PLACE = frozenset(
    (
        "zipWithIndex",
        "zipWithUniqueId",
        "zip",
        "sample",
        "sampleByKey",
        "takeSample",
        "randomSplit",
        "take",
        "first",
        "limit",
        "offset",
        "monotonically_increasing_id",
    )
)


def depends_on_places(graph: Graph, nodes: Iterable[int]) -> Node | None:
    """The first such operation on the way to these nodes; None if there is none."""
    by_id = {node.node_id: node for node in graph.nodes}
    before: dict[str, list[str]] = {}
    for edge in graph.edges:
        before.setdefault(edge.target, []).append(edge.source)
    chosen = set(nodes)
    todo = [node.node_id for node in graph.nodes if node.node in chosen]
    seen = set(todo)
    while todo:
        node_id = todo.pop()
        for source in before.get(node_id, ()):
            if source not in seen:
                seen.add(source)
                todo.append(source)
    on_the_way = sorted((by_id[node_id] for node_id in seen if node_id in by_id), key=lambda node: node.node)
    return next((node for node in on_the_way if _is_by_place(node)), None)


def _is_by_place(node: Node) -> bool:
    return node.name.lower() in _FOLDED


_FOLDED = frozenset(name.lower() for name in _BY_PLACE)

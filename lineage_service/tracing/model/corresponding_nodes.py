"""Which operation of one run of a program is which of another run. Pure.

By name and call site. Of several with the same, as in a loop, the n-th is the n-th. But the last one is the
last one, since two runs may take different numbers of turns.
"""

from __future__ import annotations

from collections.abc import Mapping

from lineage_service.tracing.model.elements import TopologyNode

__all__ = ["corresponding_node", "corresponding_source"]

Nodes = Mapping[int, TopologyNode]
_Place = tuple[str, str, str]
"""Kind, name and call site, without folders."""


def corresponding_node(nodes: Nodes, number: int, others: Nodes) -> int | None:
    """The number of the same operation among `others`; None where it cannot be told."""
    alike = _alike(nodes, _place(nodes[number]))
    others_alike = _alike(others, _place(nodes[number]))
    at = alike.index(number)
    if others_alike and at == len(alike) - 1:
        return others_alike[-1]
    return others_alike[at] if at < len(others_alike) else None


def corresponding_source(nodes: Nodes, number: int, others: Nodes) -> int | None:
    """The same of a source: that which reads the same place, if one alone does."""
    place = nodes[number].location
    readers = [
        other
        for other, node in sorted(others.items())
        if node.kind == "source" and place is not None and node.location == place
    ]
    return readers[0] if len(readers) == 1 else corresponding_node(nodes, number, others)


def _alike(nodes: Nodes, place: _Place) -> list[int]:
    return [number for number, node in sorted(nodes.items()) if node.is_public and _place(node) == place]


def _place(node: TopologyNode) -> _Place:
    return node.kind, node.name, node.call_site.rpartition("/")[2]

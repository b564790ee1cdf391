"""What a walk has reached, whichever engine walked, and which nodes lie on its way. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lineage_service.lineage import Direction
from lineage_service.tracing.model.topology import Topology

__all__ = ["Position", "Reached", "Walked", "nodes_before", "nodes_behind", "on_the_way"]


@dataclass(frozen=True, slots=True)
class Position:
    """A record as it is shown: where it stands, and a run that holds it."""

    node: int
    partition: int
    offset: int
    run: int


@dataclass(frozen=True, slots=True)
class Reached:
    """What a trace found at one public node; `positions` are one page in (partition, offset) order."""

    node: int
    total: int
    positions: tuple[Position, ...]
    has_more: bool


@dataclass(frozen=True, slots=True)
class Walked:
    """One page of a trace. `is_whole`: the walk came to its end, so every node is there."""

    reached: tuple[Reached, ...]
    flows: tuple[tuple[Position, Position], ...]  # (input, output)
    is_exact: bool
    is_whole: bool

    @property
    def left(self) -> dict[int, tuple[int, int]]:
        """Node -> (partition, offset) of the last record listed, where there are more."""
        return {
            page.node: (page.positions[-1].partition, page.positions[-1].offset)
            for page in self.reached
            if page.has_more
        }


def on_the_way(topology: Topology, direction: Direction, node: int, to: int | None) -> set[int]:
    """The nodes between `node` and `to`, or all nodes."""
    if to is None:
        return set(topology.nodes)
    is_backward = direction == "backward"
    nodes_behind = _closure(topology, node, is_backward=is_backward)
    return nodes_behind & _closure(topology, to, is_backward=not is_backward)


def nodes_before(topology: Topology, nodes: Iterable[int]) -> set[int]:
    """These nodes, and all that records may have come to them from."""
    return {before for node in set(nodes) for before in _closure(topology, node, is_backward=True)}


def nodes_behind(topology: Topology, nodes: Iterable[int]) -> set[int]:
    """These nodes, and all that their records may have gone into."""
    return {behind for node in set(nodes) for behind in _closure(topology, node, is_backward=False)}


def _closure(topology: Topology, begin: int, *, is_backward: bool) -> set[int]:
    seen, stack = {begin}, [begin]
    while stack:
        at = stack.pop()
        nearby = topology.nodes[at].parents if is_backward else topology.children.get(at, ())
        by_id = (topology.id_sources if is_backward else topology.id_targets).get(at, ())
        for other in (*nearby, *by_id):
            if other not in seen and other in topology.nodes:
                seen.add(other)
                stack.append(other)
    return seen

"""What goes into an operation that is made of internal nodes, in the order of its arguments. Pure."""

from __future__ import annotations

from collections.abc import Collection

from lineage_service.tracing.model.topology import Topology

__all__ = ["inputs_of", "side_of"]


def inputs_of(topology: Topology, operation: int) -> list[int]:
    """The nodes outside of it whose records it takes, each as often as it takes them."""
    inputs: list[int] = []
    seen: set[int] = set()
    stack = [operation]
    while stack:
        number = stack.pop()
        node = topology.nodes.get(number)
        if node is None:
            continue
        if number != operation and node.operation != operation:
            inputs.append(number)
        elif number not in seen:
            seen.add(number)
            stack += reversed(node.parents)
    return inputs


def side_of(topology: Topology, operation: int, reached: Collection[int]) -> int | None:
    """By which of its two inputs records came, of those at the nodes that a walk has reached.

    None where it has not two, or they may have come by both.
    """
    inputs = inputs_of(topology, operation)
    sides = [side for side, number in enumerate(inputs) if number in reached]
    return sides[0] if len(inputs) == 2 and len(sides) == 1 else None

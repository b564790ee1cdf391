"""Which records may have gone where they cannot be followed: into a task run that was not reported. Pure.

A record that every known run of a filter dropped may have passed it in a run that is not known. So a trace
forward from it cannot say that it went nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lineage_service.tracing.model.topology import Topology, shuffled_nodes
from spark_agent import contract

__all__ = ["lost_partitions"]

_NARROW = (contract.FLOWS, contract.IDENTITY, contract.PARTITION)


def lost_partitions(topology: Topology, unknown: Iterable[int]) -> Mapping[int, frozenset[int] | None]:
    """Node -> the partitions whose records a run that is not known may have read; None: all of them.

    `unknown`: nodes that were read of runs that are not known, as their flows say.
    """
    shuffled = shuffled_nodes(topology)
    lost: dict[int, frozenset[int] | None] = {}
    frontier: list[tuple[int, int | None]] = [*topology.lost, *((number, None) for number in unknown)]
    while frontier:
        number, partition = frontier.pop()
        node = topology.nodes.get(number)
        partitions = lost.get(number, frozenset())
        if node is None or partitions is None or partition in partitions:
            continue
        lost[number] = None if partition is None else partitions | {partition}
        is_narrow = node.relation in _NARROW and number not in shuffled
        frontier += ((parent, partition if is_narrow else None) for parent in node.parents)
    return lost

"""What decided records, in memory: by winners where there are some, else by flows."""

from __future__ import annotations

from collections.abc import Collection

from lineage_service.testing.memory.lineages import LineageIndex

__all__ = ["before", "decisive"]


def decisive(index: LineageIndex, starts: Collection[str]) -> set[str]:
    seen, frontier = set(starts), set(starts)
    while frontier:
        frontier = {earlier for hash_ in frontier for earlier in before(index, hash_)} - seen
        seen |= frontier
    return seen


def before(index: LineageIndex, hash_: str) -> list[str]:
    """What a record was made of: its winner, or all its inputs."""
    winner = index.lineage.winners.get(hash_)
    return [winner] if winner is not None else [flow.hash_in for flow in index.inputs.get(hash_, ())]

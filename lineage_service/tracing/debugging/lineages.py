"""The lineages of rows that are called bad or good: which records of each task lie in how many of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.walk.local_engine import TraceWalk
from lineage_service.tracing.walk.result import Position

__all__ = ["Lineages"]

_NONE = np.zeros(0, np.int64)


class Lineages:
    """Of several rows, each walked backward by itself. For one thread."""

    def __init__(
        self, snapshot: Snapshot, rows: Iterable[Sequence[Position]], check: Callable[[], None]
    ) -> None:
        """A row may stand at several records: a file that several nodes wrote or read."""
        self.count = 0
        self.is_exact = True
        self._positions: dict[tuple[int, int], list[Integers]] = defaultdict(list)
        nodes = snapshot.graph.topology.nodes
        for starts in rows:
            walk = TraceWalk(snapshot, "backward")
            for (node, run), offsets in _by_run(starts).items():
                walk.start(node, run, offsets)
            walk.advance(check)
            self.count += 1
            self.is_exact &= walk.is_exact
            for node in nodes:
                for run, (_, positions) in walk.at(node).items():
                    self._positions[node, run].append(positions)

    def has(self, node: int, run: int) -> bool:
        """A record of the node in that run lies in one of them."""
        return (node, run) in self._positions

    def records(self, node: int, run: int) -> tuple[Integers, Integers]:
        """(ascending positions there, in how many lineages each lies)."""
        parts = self._positions.get((node, run))
        if not parts:
            return _NONE, _NONE
        positions, counts = np.unique(np.concatenate(parts), return_counts=True)
        return positions.astype(np.int64), counts

    def counts_of(self, node: int, run: int, positions: Integers) -> Integers:
        """In how many lineages each of these lies."""
        ascending, counts = self.records(node, run)
        if not len(ascending):
            return np.zeros(len(positions), np.int64)
        at = np.minimum(ascending.searchsorted(positions), len(ascending) - 1)
        return np.where(ascending[at] == positions, counts[at], 0)


def _by_run(starts: Sequence[Position]) -> dict[tuple[int, int], Integers]:
    offsets: dict[tuple[int, int], list[int]] = defaultdict(list)
    for start in starts:
        offsets[start.node, start.run].append(start.offset)
    return {place: np.unique(np.array(of_run, np.int64)) for place, of_run in offsets.items()}

"""The lineages of rows that are called bad or good: which records of each task lie in how many of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence, Set

import numpy as np

from lineage_service.errors import InvalidQueryError
from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.walk.backward import BackwardSteps
from lineage_service.tracing.walk.frontiers import Frontiers, TooManyError
from lineage_service.tracing.walk.local_engine import TraceWalk
from lineage_service.tracing.walk.result import Position

__all__ = ["Lineages", "lineages_of", "walk_back"]

_NONE = np.zeros(0, np.int64)
#: More records of one node are walked row by row, without a number of the row beside each.
_MOST_TOGETHER = 1 << 21


class Lineages:
    """Of several rows."""

    def __init__(self, count: int = 0) -> None:
        self.count = count
        self.is_exact = True
        self._positions: dict[tuple[int, int], list[Integers]] = defaultdict(list)
        self._records: dict[tuple[int, int], tuple[Integers, Integers]] = {}

    def add(self, node: int, run: int, positions: Integers) -> None:
        """Records in the lineages, each once for each lineage that it lies in."""
        self._positions[node, run].append(positions)
        self._records.pop((node, run), None)

    def has(self, node: int, run: int) -> bool:
        """A record of the node in that run lies in one of them."""
        return (node, run) in self._positions

    def records(self, node: int, run: int) -> tuple[Integers, Integers]:
        """(ascending positions there, in how many lineages each lies)."""
        parts = self._positions.get((node, run))
        if not parts:
            return _NONE, _NONE
        if (node, run) not in self._records:
            positions, counts = np.unique(np.concatenate(parts), return_counts=True)
            self._records[node, run] = positions.astype(np.int64), counts
        return self._records[node, run]

    def counts_of(self, node: int, run: int, positions: Integers) -> Integers:
        """In how many lineages each of these lies."""
        ascending, counts = self.records(node, run)
        if not len(ascending):
            return np.zeros(len(positions), np.int64)
        at = np.minimum(ascending.searchsorted(positions), len(ascending) - 1)
        return np.where(ascending[at] == positions, counts[at], 0)


def lineages_of(
    snapshot: Snapshot, kinds: Sequence[Sequence[Sequence[Position]]], check: Callable[[], None]
) -> tuple[Lineages, ...]:
    """Those of the rows of each kind, walked backward together as long as that is little.

    A row may stand at several records: a file that several nodes wrote or read.
    """
    try:
        return _walked_together(snapshot, kinds, check)
    except (TooManyError, InvalidQueryError):  # of that many, or of all records of a node for each row
        return tuple(_walked_one_by_one(snapshot, rows, check) for rows in kinds)


def _walked_together(
    snapshot: Snapshot, kinds: Sequence[Sequence[Sequence[Position]]], check: Callable[[], None]
) -> tuple[Lineages, ...]:
    """Each row is an origin, which travels along. Raises TooManyError, InvalidQueryError."""
    frontiers = Frontiers(snapshot.graph, _MOST_TOGETHER)
    frontiers.check = check
    for origin, starts in enumerate(row for rows in kinds for row in rows):
        for (node, run), offsets in _by_run(starts).items():
            frontiers.add(node, run, np.full(len(offsets), origin, np.int64), offsets)
    walk_back(snapshot, frontiers, set(snapshot.graph.topology.nodes))
    lineages, first = [], 0
    for rows in kinds:
        of_kind = Lineages(len(rows))
        of_kind.is_exact = frontiers.is_exact
        for node in frontiers.nodes():
            for run, (origins, positions) in frontiers.at(node).items():
                assert origins is not None
                chosen = positions[(origins >= first) & (origins < first + len(rows))]
                if len(chosen):
                    of_kind.add(node, run, chosen)
        lineages.append(of_kind)
        first += len(rows)
    return tuple(lineages)


def walk_back(snapshot: Snapshot, frontiers: Frontiers, nodes: Set[int]) -> None:
    """From the records that are there, through these nodes. Raises TooManyError, InvalidQueryError."""
    steps, done = BackwardSteps(snapshot, frontiers), dict[int, int]()
    while pending := [node for node in frontiers.nodes() & nodes if frontiers.added(node) != done.get(node)]:
        node = max(pending)
        steps.step(node)
        done[node] = frontiers.added(node)


def _walked_one_by_one(
    snapshot: Snapshot, rows: Sequence[Sequence[Position]], check: Callable[[], None]
) -> Lineages:
    lineages = Lineages(len(rows))
    for starts in rows:
        walk = TraceWalk(snapshot, "backward")
        for (node, run), offsets in _by_run(starts).items():
            walk.start(node, run, offsets)
        walk.advance(check)
        lineages.is_exact &= walk.is_exact
        for node in snapshot.graph.topology.nodes:
            for run, (_, positions) in walk.at(node).items():
                lineages.add(node, run, positions)
    return lineages


def _by_run(starts: Sequence[Position]) -> dict[tuple[int, int], Integers]:
    offsets: dict[tuple[int, int], list[int]] = defaultdict(list)
    for start in starts:
        offsets[start.node, start.run].append(start.offset)
    return {place: np.unique(np.array(of_run, np.int64)) for place, of_run in offsets.items()}

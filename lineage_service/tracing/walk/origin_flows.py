"""The flows between public records, taken from the walk that reached these, while all of it is small.

Each record at a public node is an origin, and the walk carries it on to the next public nodes: what comes
there with it flows from or to it. So no second walk is needed. Where a node would hold more than `MOST`, the
walk goes on without origins, and nothing is known here. Knows what a walk found, not how to make a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from lineage_service.lineage import Direction
from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.model.lineage_graph import LineageGraph
from lineage_service.tracing.walk.frontiers import Frontiers, Records
from lineage_service.tracing.walk.result import Position, Reached

__all__ = ["MOST", "OriginFlows"]

#: Records of one node. Beyond, more is carried than is ever listed.
MOST = 1 << 13


class OriginFlows:
    """For one walk, which visits each node once. Records of public nodes are numbered as they are reached."""

    def __init__(self, graph: LineageGraph, direction: Direction) -> None:
        self._graph, self._direction = graph, direction
        self._reached = 0
        self._at: dict[tuple[int, int], tuple[int, Integers]] = {}  # (node, run) -> first number, positions
        self._flows: list[tuple[Integers, Integers]] = []  # numbers: of origins, of what came from them

    @property
    def bytes(self) -> int:
        return sum(numbers.nbytes for pair in self._flows for numbers in pair)

    def arrive(self, frontiers: Frontiers, node: int) -> None:
        """At a public node, before its step: note what came from where. Its records are the origins now."""
        frontier = frontiers.at(node)
        if not frontier:
            return
        sizes = [len(positions) for _, positions in frontier.values()]
        every = np.concatenate([positions for _, positions in frontier.values()])
        is_new = np.ones(len(every), bool)
        is_new[1:] = every[1:] != every[:-1]
        starts = np.cumsum(sizes) - sizes
        is_new[starts] = True
        numbers = np.cumsum(is_new) + (self._reached - 1)
        origins = [origin for origin, _ in frontier.values() if origin is not None]
        assert len(origins) in (0, len(frontier))  # none where the walk begins
        if origins:
            self._flows.append((np.concatenate(origins), numbers))
        now: dict[int, Records] = {}
        for (run, (_, positions)), start, size in zip(frontier.items(), starts.tolist(), sizes, strict=True):
            mine = numbers[start : start + size]
            first = int(mine[0])
            if int(mine[-1]) - first + 1 < size:
                chosen = is_new[start : start + size]
                mine, positions = mine[chosen], positions[chosen]
            self._at[node, run] = first, positions
            now[run] = mine, positions
        self._reached = int(numbers[-1]) + 1
        frontiers.put(node, now)

    def between(self, reached: Sequence[Reached]) -> list[tuple[Position, Position]] | None:
        """(input, output) of the flows between listed records, in the order of these; None: not known here.

        So it is of records that several runs hold: the walk may have come to one of these only.
        """
        positions = [position for page in reached for position in page.positions]
        place = np.full(self._reached, -1, np.int64)  # of each number in this list
        count = 0
        for (node, partition, run), group in groupby(positions, _holder):
            if self._graph.only_runs(node).get(partition) != run:
                return None
            first, numbered = self._at[node, run]
            offsets = [position.offset for position in group]
            place[numbered.searchsorted(offsets) + first] = np.arange(count, count + len(offsets))
            count += len(offsets)
        if not self._flows:
            return []
        ends = place[np.concatenate([origins for origins, _ in self._flows])]
        others = place[np.concatenate([numbers for _, numbers in self._flows])]
        if self._direction == "backward":
            ends, others = others, ends
        are_listed = (ends >= 0) & (others >= 0)
        pairs = np.unique(ends[are_listed] * np.int64(count) + others[are_listed])
        sources, targets = np.divmod(pairs, max(count, 1))
        return [
            (positions[source], positions[target])
            for source, target in zip(sources.tolist(), targets.tolist(), strict=True)
        ]


def _holder(position: Position) -> tuple[int, int, int]:
    return position.node, position.partition, position.run

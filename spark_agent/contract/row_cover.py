"""Few rows that have a part in many groups at once. Pure.

Each group that went another way lacks parts. A row may be of parts of several groups, and the row that serves
the most groups is taken first, so that the rows are few. Greedy set cover (Chvatal, 1979): at most
ln(groups) + 1 times as many as are needed.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Group", "Row", "covering"]

Row = tuple[int, int, int]
"""Node of a source, partition, position."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group that lacks `demand` of its `parts`, or all where it has not so many.

    A part is there if one of its rows is.
    """

    parts: Sequence[frozenset[Row]]
    demand: int = 1


def covering(groups: Iterable[Group]) -> set[Row]:
    """Rows such that no group lacks a part any more. Of rows that serve as many, the first is taken."""
    lacking: list[int] = []
    parts_of: dict[Row, list[tuple[int, int]]] = defaultdict(list)
    for number, group in enumerate(groups):
        lacking.append(min(group.demand, len(group.parts)))
        for at, part in enumerate(group.parts):
            for row in part:
                parts_of[row].append((number, at))
    served: set[tuple[int, int]] = set()

    def gain(row: Row) -> int:
        parts = Counter(number for number, at in parts_of[row] if (number, at) not in served)
        return sum(min(count, lacking[number]) for number, count in parts.items())

    # Gains only shrink. So the first row of the heap is the best if it still gains what it did.
    heap = [(-gain(row), row) for row in parts_of]
    heapq.heapify(heap)
    chosen: set[Row] = set()
    while heap and any(lacking):
        before, row = heapq.heappop(heap)
        now = gain(row)
        if now and -before != now:
            heapq.heappush(heap, (-now, row))
        if not now or -before != now:
            continue
        chosen.add(row)
        for number, at in parts_of[row]:
            if lacking[number] and (number, at) not in served:
                lacking[number] -= 1
            served.add((number, at))
    return chosen

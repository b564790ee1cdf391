"""Where the explanations of two groups of records meet: the latest records that both need, and the rows.

Of operations that users see. Both are walked at once while they are small, else one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.interval_join import distinct
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.explain.answers import rows_of
from lineage_service.tracing.explain.makers import at_makers
from lineage_service.tracing.explain.walk import ExplanationWalk
from lineage_service.tracing.walk.frontiers import TooManyError
from lineage_service.tracing.walk.result import Position

__all__ = ["Meeting", "Rows", "meet", "total"]

Rows = Mapping[int, Mapping[int, Integers]]
"""Source -> partition -> offsets, ascending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """What the explanations of two groups share.

    `rows`: of each. `node`: the last operation with records that both need; None where there is none.
    `loop`, `turn`: which version of a loop variable that is; None if it is none.
    """

    rows: tuple[Rows, Rows]
    node: int | None = None
    partitions: Mapping[int, Integers] = field(default_factory=dict)  # partition -> offsets, ascending
    loop: str | None = None
    turn: int | None = None

    def holders(self, node: int, partition: int, offset: int) -> Iterator[int]:
        """Which of the two explanations have a row: 0, 1, or both."""
        for group, rows in enumerate(self.rows):
            offsets = rows.get(node, {}).get(partition, _NONE)
            at = int(offsets.searchsorted(offset))
            if at < len(offsets) and int(offsets[at]) == offset:
                yield group


_NONE = np.zeros(0, np.int64)
_Walked = tuple[ExplanationWalk, int]
"""A walk, and which of its groups is meant."""


def meet(
    snapshot: Snapshot, first: Sequence[Position], second: Sequence[Position], check: Callable[[], None]
) -> Meeting:
    """`check` is called now and then, and ends it by what it raises."""
    walked = _walked(snapshot, (first, second), check)
    rows = tuple(rows_of(walk).get(group, {}) for walk, group in walked)
    nodes = set.intersection(*(set(walk.nodes) for walk, _ in walked))
    families = snapshot.graph.families
    for node in sorted(nodes, reverse=True):
        if not snapshot.graph.topology.nodes[node].is_public:
            continue
        check()
        one, other = (_records(walk, group, node) for walk, group in walked)
        shared = {
            partition: offsets
            for partition in sorted(one.keys() & other.keys())
            if len(offsets := np.intersect1d(one[partition], other[partition], assume_unique=True))
        }
        if shared:
            place = families.place_of.get(node)
            return Meeting(
                rows=(rows[0], rows[1]),
                node=node,
                partitions=shared,
                loop=None if place is None else families.families[place[0]].loop,
                turn=None if place is None else place[1],
            )
    return Meeting(rows=(rows[0], rows[1]))


def total(rows: Rows) -> int:
    return sum(len(offsets) for by_partition in rows.values() for offsets in by_partition.values())


def _walked(
    snapshot: Snapshot, groups: Sequence[Sequence[Position]], check: Callable[[], None]
) -> list[_Walked]:
    together = ExplanationWalk(snapshot, groups)
    try:
        together.advance(check)
    except TooManyError:
        alone = [ExplanationWalk(snapshot, [starts]) for starts in groups]
        for walk in alone:
            walk.advance(check)
        return [(walk, 0) for walk in alone]
    return [(together, group) for group in range(len(groups))]


def _records(walk: ExplanationWalk, group: int, node: int) -> dict[int, Integers]:
    """Partition -> offsets of what a group needs there; of a cached node, where it was computed."""
    runs = walk.snapshot.graph.topology.runs
    parts: dict[int, list[Integers]] = {}
    for run, (origins, positions) in walk.frontiers.at(node).items():
        if origins is not None and walk.group_count > 1:
            positions = positions[origins // walk.labels.count == group]
        if len(positions):
            for maker, _, offsets in at_makers(walk.snapshot.graph, node, run, distinct(positions)):
                parts.setdefault(runs[maker].partition, []).append(offsets)
    return {partition: distinct(np.concatenate(offsets)) for partition, offsets in parts.items()}

"""The flows between the records that a page lists, found by a second walk: forward from these.

Always forward, whichever direction the trace had: a group may have a million inputs, while a record mostly
goes into few groups. So this stays short, however long the trace was. Where the trace was short,
`origin_flows` knows the same without a second walk.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.walk.forward import ForwardSteps
from lineage_service.tracing.walk.frontiers import Frontiers, Targets
from lineage_service.tracing.walk.result import Position, Reached

__all__ = ["flows_between", "walk_to_public"]


def flows_between(
    snapshot: Snapshot,
    main: Frontiers,
    reached: list[Reached],
    check: Callable[[], None],
) -> list[tuple[Position, Position]]:
    """(input, output) of the flows between listed records, in the order of these, that a walk has reached."""
    positions = [position for page in reached for position in page.positions]
    by_place = {
        (position.node, position.partition, position.offset): index
        for index, position in enumerate(positions)
    }
    offsets_of: dict[tuple[int, int], list[int]] = defaultdict(list)
    for node, partition, offset in sorted(by_place):
        offsets_of[node, partition].append(offset)
    listed = {place: np.array(offsets, np.int64) for place, offsets in offsets_of.items()}
    targets = Targets(main, listed)
    pairs: set[tuple[int, int]] = set()
    for page in reached:
        check()
        starts = _starts(snapshot, page, by_place)
        side = walk_to_public(snapshot, page.node, starts, targets=targets)
        for node in side.nodes() - {page.node}:
            for run, (origins, offsets) in side.at(node).items():
                assert origins is not None
                partition = snapshot.graph.topology.runs[run].partition
                for origin, offset in zip(origins.tolist(), offsets.tolist(), strict=True):
                    other = by_place.get((node, partition, offset))
                    if other is not None:
                        pairs.add((origin, other))
    return [(positions[source], positions[target]) for source, target in sorted(pairs)]


def walk_to_public(
    snapshot: Snapshot,
    node: int,
    starts: Iterable[tuple[int, Integers, Integers]],
    most: int | None = None,
    targets: Targets | None = None,
) -> Frontiers:
    """Forward from (run, origins, positions) of `node` to the next public nodes, and no further.

    With `targets`, other records may be left out. Raises TooManyError.
    """
    side = Frontiers(snapshot.graph, most, targets)
    steps = ForwardSteps(snapshot, side)
    for run, origins, offsets in starts:
        side.add(node, run, origins, offsets)
    done: set[int] = set()
    while pending := side.nodes() - done:
        at = min(pending)
        done.add(at)
        if at == node or not snapshot.graph.topology.nodes[at].is_public:
            steps.step(at)
    return side


def _starts(
    snapshot: Snapshot, reached: Reached, by_place: dict[tuple[int, int, int], int]
) -> Iterator[tuple[int, Integers, Integers]]:
    """The listed records of one node, in every run that holds them, each its own origin."""
    by_partition: dict[int, list[Position]] = defaultdict(list)
    for position in reached.positions:
        by_partition[position.partition].append(position)
    for partition, positions in by_partition.items():
        origins = np.array(
            [by_place[position.node, position.partition, position.offset] for position in positions], np.int64
        )
        offsets = np.array([position.offset for position in positions], np.int64)
        for run in snapshot.graph.holders_of(reached.node, partition, "forward"):
            yield run.number, origins, offsets

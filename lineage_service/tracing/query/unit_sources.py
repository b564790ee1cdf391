"""The input rows that single records were made of: the first ones of each record, and how many there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import SourceRow
from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.debugging.lineages import walk_back
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.query.open_applications import Opened
from lineage_service.tracing.walk.frontiers import Frontiers, TooManyError
from lineage_service.tracing.walk.local_engine import TraceWalk
from lineage_service.tracing.walk.result import Position

__all__ = ["UnitSources", "sources_of_units"]

#: More records of one node are walked for each unit by itself.
_MOST_TOGETHER = 1 << 16

_Reached = Mapping[int, Mapping[int, Integers]]
"""Source -> partition -> ascending offsets; the last source first."""


@dataclass(frozen=True, slots=True)
class UnitSources:
    """Of one record."""

    rows: tuple[SourceRow, ...]
    total: int


def sources_of_units(
    opened: Opened,
    locations: RecordLocations,
    units: Sequence[Position],
    most: int,
    check: Callable[[], None],
) -> list[UnitSources]:
    """Of each unit, `most` rows at most. Raises InvalidQueryError."""
    reached = _reached(opened.snapshot, units, check)
    listed = [list(_first_places(sources, most)) for sources in reached]
    rows = _rows(opened, locations, {place for places in listed for place in places}, check)
    return [
        UnitSources(
            tuple(rows[place] for place in places if place in rows),
            sum(len(offsets) for partitions in sources.values() for offsets in partitions.values()),
        )
        for sources, places in zip(reached, listed, strict=True)
    ]


_Place = tuple[int, int, int]
"""(source, partition, offset)."""


def _first_places(sources: _Reached, most: int) -> Iterator[_Place]:
    """Of each source."""
    for node, partitions in sources.items():
        left = most
        for partition in sorted(partitions):
            offsets = partitions[partition][:left].tolist()
            left -= len(offsets)
            yield from ((node, partition, offset) for offset in offsets)


def _rows(
    opened: Opened, locations: RecordLocations, places: set[_Place], check: Callable[[], None]
) -> dict[_Place, SourceRow]:
    by_node: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for node, partition, offset in sorted(places):
        by_node[node].append((partition, offset))
    return {
        (node, *place): row
        for node, of_node in by_node.items()
        for place, row in locations.rows_of(
            opened.graph.topology.nodes[node], of_node, check, ended=opened.application.ended
        ).items()
    }


# -- walks -------------------------------------------------------------------------------------------


def _reached(snapshot: Snapshot, units: Sequence[Position], check: Callable[[], None]) -> list[_Reached]:
    nodes = snapshot.graph.topology.nodes
    sources = sorted((number for number in nodes if nodes[number].kind == "source"), reverse=True)
    try:
        return _reached_together(snapshot, units, sources, check)
    except (TooManyError, InvalidQueryError):
        return [_reached_by(snapshot, unit, sources, check) for unit in units]


def _reached_together(
    snapshot: Snapshot, units: Sequence[Position], sources: Sequence[int], check: Callable[[], None]
) -> list[_Reached]:
    frontiers = Frontiers(snapshot.graph, _MOST_TOGETHER)
    frontiers.check = check
    for origin, unit in enumerate(units):
        frontiers.add(unit.node, unit.run, np.array([origin]), np.array([unit.offset]))
    walk_back(snapshot, frontiers, set(snapshot.graph.topology.nodes))
    reached: list[dict[int, dict[int, Integers]]] = [{} for _ in units]
    runs = snapshot.graph.topology.runs
    for node in sources:
        for run, (origins, positions) in frontiers.at(node).items():
            assert origins is not None
            for origin in np.unique(origins).tolist():
                partitions = reached[origin].setdefault(node, {})
                before = partitions.get(runs[run].partition, _NONE)
                partitions[runs[run].partition] = np.union1d(before, positions[origins == origin])
    return list(reached)


def _reached_by(
    snapshot: Snapshot, unit: Position, sources: Sequence[int], check: Callable[[], None]
) -> _Reached:
    walk = TraceWalk(snapshot, "backward")
    walk.start(unit.node, unit.run, np.array([unit.offset], np.int64))
    walk.advance(check)
    return {node: walk.by_partition(node) for node in sources}


_NONE = np.zeros(0, np.int64)

"""Which findings follow from others: a join meets a record too often because a map repeated it.

A unit follows from an earlier one if at least half of what it gave, or was made of, came from that one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lineage_service.errors import InvalidQueryError
from lineage_service.tracing.columns.column_cache import NO_RUN, Integers
from lineage_service.tracing.columns.interval_join import distinct, inputs_of_outputs, outputs_of_inputs
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.debugging.findings import Finding
from lineage_service.tracing.debugging.lineages import walk_back
from lineage_service.tracing.debugging.unit_places import UnitPlace
from lineage_service.tracing.walk.frontiers import Frontiers, TooManyError
from lineage_service.tracing.walk.local_engine import TraceWalk
from lineage_service.tracing.walk.result import on_the_way

__all__ = ["MOST_FOLLOWED", "origins_of"]

#: Of the records of a unit, so many must come from another one.
_SHARE = 0.5
#: Units that are followed: the ones with the largest scores.
MOST_FOLLOWED = 20
#: So many records of a unit, or of what they were made of, are followed back, each by itself.
_FEW = 1 << 14
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class _Records:
    """What a unit gave, or was made of: records of one node in one run."""

    node: int
    run: int
    positions: Integers


def origins_of(
    snapshot: Snapshot, units: Mapping[int, tuple[Finding, UnitPlace]], check: Callable[[], None]
) -> dict[int, int]:
    """For each unit that follows from one of an earlier operation, the first such one, by their keys.

    What follows from another unit is itself no origin.
    """
    followed = sorted(units, key=lambda key: (units[key][0].node, key))[:MOST_FOLLOWED]
    ways = _Ways(snapshot, units, check)
    origins: dict[int, int] = {}
    for at, key in enumerate(followed):
        node = units[key][0].node
        earlier = [one for one in followed[:at] if one not in origins and units[one][0].node < node]
        origin = next((one for one, share in ways.shares(earlier, key) if share >= _SHARE), None)
        if origin is not None:
            origins[key] = origin
    return origins


class _Ways:
    """The ways between units."""

    def __init__(
        self,
        snapshot: Snapshot,
        units: Mapping[int, tuple[Finding, UnitPlace]],
        check: Callable[[], None],
    ) -> None:
        self._snapshot, self._units, self._check = snapshot, units, check
        self._forward: dict[int, TraceWalk] = {}

    def shares(self, earlier: Sequence[int], key: int) -> Iterator[tuple[int, float]]:
        """Which share of the records of a unit came from each earlier one."""
        records = _records_of(self._snapshot, *self._units[key])
        if not earlier or not len(records.positions):
            return
        behind = self._behind(records, {self._units[one][1].node for one in earlier})
        for one in earlier:
            finding, place = self._units[one]
            if behind is None:
                yield one, self._share_reached(one, records)
                continue
            _, positions = behind.at(place.node).get(finding.run, (None, _NONE))
            came = np.count_nonzero(positions == place.offset)
            yield one, came / len(records.positions)

    def _behind(self, records: _Records, nodes: Iterable[int]) -> Frontiers | None:
        """What the records were made of at these nodes, each an origin of its own.

        None where that is much, or an upper bound: those are not the same in both directions.
        """
        topology = self._snapshot.graph.topology
        frontiers = Frontiers(self._snapshot.graph, _FEW)
        frontiers.check = self._check
        on_way = (on_the_way(topology, "backward", records.node, node) for node in nodes)
        try:
            frontiers.add(records.node, records.run, np.arange(len(records.positions)), records.positions)
            walk_back(self._snapshot, frontiers, set().union(*on_way))
        except (TooManyError, InvalidQueryError):
            return None
        return frontiers if frontiers.is_exact else None

    def _share_reached(self, one: int, records: _Records) -> float:
        """The same by a walk forward."""
        finding, place = self._units[one]
        walk = self._forward.get(one)
        if walk is None:
            walk = self._forward[one] = TraceWalk(self._snapshot, "forward")
            walk.start(place.node, finding.run, np.array([place.offset], np.int64))
            walk.advance(self._check)
        reached = walk.at(records.node).get(records.run)
        return 0.0 if reached is None else float(np.isin(records.positions, reached[1]).mean())


def _records_of(snapshot: Snapshot, finding: Finding, place: UnitPlace) -> _Records:
    stream = finding.node, finding.run
    unit = np.array([place.offset], np.int64)
    if finding.feature == "outputs":
        pieces = [
            outputs_of_inputs(rows, unit, writer)[1]
            for rows in snapshot.flows.near(*stream, inputs=(place.offset, place.offset))
            for writer in (NO_RUN, finding.run)
        ]
        return _Records(*stream, _together(pieces))
    slices = snapshot.flows.near(*stream, outputs=(place.offset, place.offset))
    pieces = [
        inputs for writer, _, inputs in inputs_of_outputs(slices, unit) if writer in (NO_RUN, finding.run)
    ]
    before = snapshot.graph.parent_in_run.get((finding.run, finding.node), finding.node)
    return _Records(before, finding.run, _together(pieces))


def _together(pieces: list[Integers]) -> Integers:
    return distinct(np.concatenate(pieces)) if any(map(len, pieces)) else _NONE

"""Which findings follow from others: a join meets a record too often because a map repeated it.

A unit follows from an earlier one if at least half of what it gave, or was made of, came from that one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from lineage_service.tracing.columns.column_cache import NO_RUN, Integers
from lineage_service.tracing.columns.interval_join import distinct, inputs_of_outputs, outputs_of_inputs
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.debugging.findings import Finding
from lineage_service.tracing.debugging.unit_places import UnitPlace
from lineage_service.tracing.walk.local_engine import TraceWalk

__all__ = ["MOST_FOLLOWED", "origins_of"]

#: Of the records of a unit, so many must come from another one.
_SHARE = 0.5
#: Units that are followed: the ones with the largest scores.
MOST_FOLLOWED = 20


@dataclass(frozen=True, slots=True)
class _Records:
    """What a unit gave, or was made of: records of one node in one run."""

    node: int
    run: int
    positions: Integers


def origins_of(
    snapshot: Snapshot, units: Mapping[int, tuple[Finding, UnitPlace]], check: Callable[[], None]
) -> dict[int, int]:
    """For each unit that follows from one of an earlier operation, the first such one, by their keys."""
    followed = sorted(units, key=lambda key: (units[key][0].node, key))[:MOST_FOLLOWED]
    records = {key: _records_of(snapshot, *units[key]) for key in followed}
    origins: dict[int, int] = {}
    for at, key in enumerate(followed):
        later = [other for other in followed[at + 1 :] if units[other][0].node > units[key][0].node]
        if key in origins or not later:
            continue
        finding, place = units[key]
        walk = TraceWalk(snapshot, "forward")
        walk.start(place.node, finding.run, np.array([place.offset], np.int64))
        walk.advance(check)
        for other in later:
            if other not in origins and _share_of(records[other], walk) >= _SHARE:
                origins[other] = key
    return origins


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
    return distinct(np.concatenate(pieces)) if any(map(len, pieces)) else np.zeros(0, np.int64)


def _share_of(records: _Records, walk: TraceWalk) -> float:
    reached = walk.at(records.node).get(records.run)
    if reached is None or not len(records.positions):
        return 0.0
    return float(np.isin(records.positions, reached[1]).mean())

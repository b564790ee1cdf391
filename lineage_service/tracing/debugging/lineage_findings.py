"""Findings among the records that bad and good outputs are made of, and no others.

A record's whole fan-out or group counts, not only what of it is in these lineages. It is compared with the
records in the lineages of good outputs. One that more bad outputs are made of than good ones scores more.
Reads only the rows that speak of these records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.debugging.findings import Finding, Findings, Unit
from lineage_service.tracing.debugging.lineages import Lineages
from lineage_service.tracing.debugging.profiles import Profile, Siblings, unit_requests
from lineage_service.tracing.debugging.tails import low_bits, upper_bits
from lineage_service.tracing.debugging.tallies import Tally
from lineage_service.tracing.debugging.unit_tallies import Stream, UnitRequest, UnitTally
from lineage_service.tracing.debugging.unit_values import fan_in_of, fan_out_of

__all__ = ["in_lineages", "profile_of_lineages", "units_at"]

#: Bits that lineages add at most: they say where to look, not how odd it is there.
_MOST_OF_LINEAGES = 10.0
#: Different values that are judged at either end of those of a task.
_JUDGED = 32

_UnitFeature = Literal["outputs", "inputs"]


@dataclass(frozen=True, slots=True)
class _Units:
    """Records of one task that lie in lineages: ascending positions, and the value of each."""

    positions: Integers
    values: Integers


def in_lineages(snapshot: Snapshot, bad: Lineages, good: Lineages) -> Findings:
    """Of the tasks that bad outputs are made in."""
    findings = Findings()
    for node, requests in _by_node(unit_requests(snapshot.graph)).items():
        for feature in _features(requests):
            population = Tally.together(
                Tally.of(_units(snapshot, good, (node, run), feature).values) for run in requests
            )
            if not population.size:
                continue
            for run in requests:
                units = _units(snapshot, bad, (node, run), feature)
                if len(units.values):
                    findings.tests += 2
                    place = units_at(snapshot, (node, run), feature), run
                    counts = bad.counts_of(*place, units.positions), good.counts_of(*place, units.positions)
                    extra = _ratio_bits(counts[0], bad.count, counts[1], good.count)
                    findings.add(_oddest((node, run), feature, units, population, counts, extra))
    return findings


def profile_of_lineages(snapshot: Snapshot, bad: Lineages, good: Lineages) -> Profile:
    """Outputs per input of the tasks, of the inputs in these lineages alone."""
    siblings = []
    for node, requests in _by_node(unit_requests(snapshot.graph)).items():
        units: dict[int, UnitTally] = {}
        for run in requests if "outputs" in _features(requests) else ():
            place = units_at(snapshot, (node, run), "outputs"), run
            positions = np.union1d(bad.records(*place)[0], good.records(*place)[0])
            if len(positions):
                units[run] = UnitTally(Tally.of(fan_out_of(snapshot.flows, (node, run), positions)))
        siblings.append(Siblings(node, "outputs", tuple(units), tuple(units.values())))
    return Profile(tuple(one for one in siblings if one.runs))


def units_at(snapshot: Snapshot, stream: Stream, feature: str) -> int:
    """The node of which the units of a task's feature are records."""
    node, run = stream
    return snapshot.graph.parent_in_run[run, node] if feature == "outputs" else node


def _by_node(requests: Mapping[Stream, UnitRequest]) -> dict[int, dict[int, UnitRequest]]:
    by_node: dict[int, dict[int, UnitRequest]] = defaultdict(dict)
    for (node, run), of_stream in requests.items():
        by_node[node][run] = of_stream
    return by_node


def _features(requests: Mapping[int, UnitRequest]) -> Iterator[_UnitFeature]:
    if all(of_stream.has_fan_out for of_stream in requests.values()):
        yield "outputs"
    if any(of_stream.has_fan_in for of_stream in requests.values()):
        yield "inputs"


def _units(snapshot: Snapshot, lineages: Lineages, stream: Stream, feature: _UnitFeature) -> _Units:
    positions, _ = lineages.records(units_at(snapshot, stream, feature), stream[1])
    values = (fan_out_of if feature == "outputs" else fan_in_of)(snapshot.flows, stream, positions)
    return _Units(positions, values)


def _ratio_bits(bad: Integers, of_bad: int, good: Integers, of_good: int) -> npt.NDArray[np.float64]:
    """By how much likelier a record is to be in a bad lineage than in a good one."""
    ratios = ((bad + 0.5) / (of_bad + 1)) / ((good + 0.5) / (of_good + 1))
    return np.clip(np.log2(ratios), 0.0, _MOST_OF_LINEAGES)


def _oddest(
    stream: Stream,
    feature: _UnitFeature,
    units: _Units,
    population: Tally,
    counts: tuple[Integers, Integers],
    extra: npt.NDArray[np.float64],
) -> Finding:
    """The record with the largest score; of equal ones the first."""
    size = len(units.values)
    distinct = np.unique(units.values)
    judged = {
        **{value: low_bits(value, size, population) for value in distinct[:_JUDGED].tolist()},
        **dict.fromkeys(distinct[_JUDGED:-_JUDGED].tolist(), 0.0),
    }
    for value in distinct[-_JUDGED:].tolist():
        judged[value] = max(judged.get(value, 0.0), upper_bits(value, size, population))
    bits = np.array([judged[value] for value in distinct.tolist()])[distinct.searchsorted(units.values)]
    at = int((bits + extra).argmax())
    value = int(units.values[at])
    unit = Unit(
        value, population, int(units.positions[at]), int(counts[0][at]), int(counts[1][at]), is_one=False
    )
    return Finding(*stream, feature, float(bits[at]), unit, of_lineages=float(extra[at]))

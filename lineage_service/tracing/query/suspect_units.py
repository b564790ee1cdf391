"""The records that make tasks suspects, as people see them: with the input rows that they were made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lineage_service.lineage import SourceRow, SuspectRecord
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.debugging.candidates import Candidate
from lineage_service.tracing.debugging.findings import Finding
from lineage_service.tracing.debugging.lineages import Lineages
from lineage_service.tracing.debugging.unit_places import UnitPlace, place_of
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.partition_folders import short_place
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.query.open_applications import Opened
from lineage_service.tracing.query.unit_sources import UnitSources, sources_of_units
from lineage_service.tracing.walk.result import Position
from spark_agent import contract

__all__ = ["NO_UNIT", "ShownUnit", "UnitPlaces", "shown_units"]

#: Input rows that are listed of a suspect.
_MOST_ROWS = 10


@dataclass(frozen=True, slots=True)
class ShownUnit:
    """The record that stands out."""

    record: SuspectRecord | None = None
    words: str | None = None
    sources: tuple[SourceRow, ...] = ()
    sources_total: int = 0
    leads_to_bad: bool | None = None


NO_UNIT = ShownUnit()


class UnitPlaces:
    """Where the records are that stand out. Looks for each of them once."""

    def __init__(self, snapshot: Snapshot, bad: Lineages, check: Check) -> None:
        self._snapshot, self.bad, self.check = snapshot, bad, check
        self._places: dict[tuple[int, int, str], UnitPlace | None] = {}

    def of(self, candidate: Candidate) -> UnitPlace | None:
        """None where no record stands out, or it is not stored (any more)."""
        finding = candidate.strongest
        if not isinstance(finding, Finding) or finding.unit is None:
            return None
        name = finding.node, finding.run, finding.feature
        if name not in self._places:
            self.check()
            self._places[name] = place_of(self._snapshot, finding, finding.unit, self.bad, self.check)
        return self._places[name]


def shown_units(
    opened: Opened, locations: RecordLocations, candidates: Sequence[Candidate], places: UnitPlaces
) -> list[ShownUnit]:
    """Those of the candidates."""
    units: dict[int, tuple[Position, bool]] = {}
    for at, candidate in enumerate(candidates):
        place = places.of(candidate)
        if place is not None and candidate.run is not None:
            unit = Position(place.node, candidate.partition, place.offset, candidate.run)
            units[at] = unit, place.is_in_bad
    positions = [unit for unit, _ in units.values()]
    sources = dict(
        zip(units, sources_of_units(opened, locations, positions, _MOST_ROWS, places.check), strict=True)
    )
    return [
        _shown(opened, *units[at], sources[at], places.bad) if at in units else NO_UNIT
        for at in range(len(candidates))
    ]


def _shown(opened: Opened, unit: Position, is_in_bad: bool, sources: UnitSources, bad: Lineages) -> ShownUnit:
    topology = opened.graph.topology
    record_id = contract.record_id(topology.nodes[unit.node].kind, unit.partition, unit.offset)
    rows = sources.rows
    row = f" ({short_place(rows[0].path)}:{rows[0].line})" if sources.total == 1 and rows else ""
    return ShownUnit(
        record=SuspectRecord(
            record_id=record_id, node_id=contract.node_id(topology.application_id, unit.node)
        ),
        words=f"{unit.node}#{record_id}{row}",
        sources=rows[:_MOST_ROWS],
        sources_total=sources.total,
        leads_to_bad=is_in_bad if bad.count else None,
    )

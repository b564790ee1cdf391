"""Where the unit of a finding is: the record that stands out, and leads to a bad output if one does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.debugging.findings import Finding, Unit
from lineage_service.tracing.debugging.lineage_findings import units_at
from lineage_service.tracing.debugging.lineages import Lineages
from lineage_service.tracing.debugging.profiles import unit_requests
from lineage_service.tracing.debugging.unit_values import fan_in_of, fan_out_of, input_with, output_with

__all__ = ["UnitPlace", "place_of"]


@dataclass(frozen=True, slots=True)
class UnitPlace:
    """A record of `node` in the run of the finding."""

    node: int
    offset: int
    is_in_bad: bool


def place_of(
    snapshot: Snapshot, finding: Finding, unit: Unit, bad: Lineages, check: Callable[[], None]
) -> UnitPlace | None:
    """None where no such record is stored (any more)."""
    stream = finding.node, finding.run
    node = units_at(snapshot, stream, finding.feature)
    if unit.bad and unit.position is not None:
        return UnitPlace(node, unit.position, True)
    in_bad, _ = bad.records(node, finding.run)
    values = (fan_out_of if finding.feature == "outputs" else fan_in_of)(snapshot.flows, stream, in_bad)
    alike = in_bad[values == unit.value]
    if len(alike):
        return UnitPlace(node, int(alike[0]), True)
    position = unit.position
    if position is None and finding.feature == "outputs":
        request = unit_requests(snapshot.graph)[stream]
        position = input_with(snapshot.flows, stream, request, unit.value, check)
    elif position is None:
        position = output_with(snapshot.flows, stream, unit.value, check)
    return None if position is None else UnitPlace(node, position, False)

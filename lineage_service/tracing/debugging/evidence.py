"""Findings in words: what a task did, and what the others did. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lineage_service.tracing.debugging.drift import Drift
from lineage_service.tracing.debugging.findings import Finding, Unit
from lineage_service.tracing.files.partition_folders import short_place
from lineage_service.tracing.model.elements import TopologyNode

__all__ = ["Evidence", "drift_evidence", "evidence_of", "operation_in_words"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A value among those of others, and the sentence about it."""

    value: float
    low: float | None
    high: float | None
    others: int
    why: str


def operation_in_words(node: TopologyNode, partition: int | None) -> str:
    """`flatMap job.py:12, partition 3`."""
    sites = " ".join(short_place(site) for site in node.call_site.split(", "))
    at = f"{node.name} {sites}".rstrip()
    return at if partition is None else f"{at}, partition {partition}"


def evidence_of(finding: Finding, operation: str, record: str | None) -> Evidence:
    """`record` names the one that stands out, with its row of a file if it has one."""
    if finding.unit is not None:
        return _of_unit(finding, finding.unit, operation, record)
    others = list(finding.means)
    others.remove(finding.mean)
    low, high, count = min(others, default=None), max(others, default=None), len(others)
    tasks = f"the other {count:,} partitions" if count > 1 else "the other partition"
    ranged = "" if low is None or high is None else f"; {tasks} {_range(finding, low, high)}"
    if finding.feature == "dropped":
        said = f"{_percent(finding.mean)} of the inputs gave no output"
    elif finding.feature == "records":
        said = f"{_number(finding.mean)} records were read"
    elif finding.feature == "inputs":
        said = f"outputs were made of {_number(finding.mean)} inputs on average"
    else:
        said = f"inputs gave {_number(finding.mean)} outputs on average"
    return Evidence(finding.mean, low, high, count, f"{operation}: {said}{ranged}")


def drift_evidence(drift: Drift, operation: str) -> Evidence:
    share = drift.kept.share
    why = (
        f"{operation}: {_number(share)} outputs per input; in the {drift.runs} runs before "
        f"{_number(drift.low)} to {_number(drift.high)}"
    )
    return Evidence(share, drift.low, drift.high, drift.runs, why)


def _of_unit(finding: Finding, unit: Unit, operation: str, record: str | None) -> Evidence:
    others = unit.others
    low, high = (float(others.low), float(others.high)) if others.size else (None, None)
    if finding.feature == "outputs":
        said = f"input{_named(record)} gave {_many(unit.value, 'output')}"
    else:
        said = f"output{_named(record)} was made of {_many(unit.value, 'input')}"
    ranged = ""
    if low is not None and high is not None:
        verb = "gave" if finding.feature == "outputs" else "of"
        ranged = f"; the other {others.size:,} {verb} {_span(low, high)}"
    return Evidence(float(unit.value), low, high, others.size, f"{operation}: {said}{ranged}")


def _named(record: str | None) -> str:
    return "" if record is None else f" {record}"


def _range(finding: Finding, low: float, high: float) -> str:
    return f"{_percent(low)} to {_percent(high)}" if finding.feature == "dropped" else _span(low, high)


def _span(low: float, high: float) -> str:
    return _number(low) if low == high else f"{_number(low)} to {_number(high)}"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _number(value: float) -> str:
    """Three digits that count."""
    if value == int(value) or abs(value) >= 1000:
        return f"{round(value):,}"
    return np.format_float_positional(value, precision=3, fractional=False, trim="-")


def _percent(share: float) -> str:
    return f"{_number(100 * share)} %"

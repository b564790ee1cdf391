"""From times to tables. Values in, text out: measures nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from perf.tables import table

#: What is asked for, in milliseconds: of the first page of any trace, before and after maintenance.
FRESH_P50, FRESH_P99, MAINTAINED_P50 = 30.0, 300.0, 15.0
PEAK_MIB = 1024.0
FRESH, MAINTAINED = "fresh", "after `lineage maintain`"
FIRST, AGAIN, SIXTEEN = "first time", "again", "16 users"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One kind of question, asked in one way of one store in one state."""

    store: str
    flows: int
    state: str
    way: str
    kind: str
    ms: list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What the process that answered took: peak MiB, and ms until it knew the application."""

    store: str
    state: str
    open_ms: float
    peak_mib: float


@dataclass(frozen=True, slots=True, kw_only=True)
class InNeo4j:
    """The same trace here and as one statement of Cypher, in milliseconds, medians."""

    word: str
    sources: int
    ours_ms: float
    neo4j_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    about: Mapping[str, str]
    measured: Sequence[Measured]
    opened: Sequence[Opened]
    neo4j: Sequence[InNeo4j]


def as_json(result: Result) -> dict[str, Any]:
    return {
        "about": dict(result.about),
        **{
            name: [asdict(item) for item in getattr(result, name)] for name in ("measured", "opened", "neo4j")
        },
    }


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that so large a share of all does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def markdown(result: Result) -> str:
    parts = [
        "# What traces take over HTTP",
        "Made by `python -m perf.trace`; [README.md](../README.md) says how and what the words mean.",
        "\n".join(f"- {name}: {value}" for name, value in result.about.items()),
        "## All traces of the largest store together",
        _targets(result.measured),
    ]
    for store, state in dict.fromkeys((case.store, case.state) for case in result.measured):
        chosen = [case for case in result.measured if (case.store, case.state) == (store, state)]
        parts += [f"## {store}, {chosen[0].flows:,} flows, {state}", _times(chosen)]
    parts += ["## The process that answers", _processes(result.opened)]
    if result.neo4j:
        parts += ["## The same in Neo4j", _neo4j(result.neo4j)]
    return "\n\n".join(parts) + "\n"


def _targets(measured: Sequence[Measured]) -> str:
    largest = max(measured, key=lambda case: case.flows).store
    rows = []
    for state in dict.fromkeys(case.state for case in measured):
        for way in (FIRST, AGAIN, SIXTEEN):
            times = [
                ms
                for case in measured
                if (case.store, case.state, case.way) == (largest, state, way)
                and case.kind.startswith(("backward", "forward"))
                for ms in case.ms
            ]
            if times:
                p50, p99 = median(times), percentile(times, 0.99)
                target = FRESH_P50 if state == FRESH else MAINTAINED_P50
                has_target = way != SIXTEEN
                rows.append(
                    [
                        f"{largest}, {state}",
                        way,
                        _against(p50, target) if has_target else f"{p50:.1f}",
                        _against(p99, FRESH_P99) if has_target and state == FRESH else f"{p99:.1f}",
                    ]
                )
    return table(["", "asked", "p50 ms", "p99 ms"], rows)


def _against(value: float, target: float) -> str:
    return f"{value:.1f}, {'**met**' if value <= target else 'missed'}: <= {target:g}"


def _times(chosen: Sequence[Measured]) -> str:
    rows = [
        [
            case.kind,
            case.way,
            str(len(case.ms)),
            f"{median(case.ms):.1f}",
            f"{percentile(case.ms, 0.99):.1f}",
            f"{min(case.ms):.1f}-{max(case.ms):.1f}",
        ]
        for case in chosen
    ]
    return table(["", "asked", "answers", "p50 ms", "p99 ms", "range"], rows)


def _processes(opened: Sequence[Opened]) -> str:
    rows = [
        [store.store, store.state, f"{store.open_ms:.0f}", _against(store.peak_mib, PEAK_MIB)]
        for store in opened
    ]
    return table(["", "store", "ms to the first answer", "peak MiB"], rows)


def _neo4j(comparisons: Sequence[InNeo4j]) -> str:
    rows = [
        [
            comparison.word,
            f"{comparison.sources:,}",
            f"{comparison.ours_ms:.1f}",
            f"{comparison.neo4j_ms:.1f}",
        ]
        for comparison in comparisons
    ]
    return table(["word", "lines that it comes from", "here, ms", "Cypher, ms"], rows)

"""From measured runs to ratios and a page of Markdown. Values in, text out: measures nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from perf.capture.cases import CASES, LINEAGE, MODES, RATIOS, Case
from perf.tables import table


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One measured run.

    `workers_s` is the part of `cpu_s` that Python workers took; `sent_bytes` is what Kafka stored; `flows` is
    counted in the last round.
    """

    case: str
    megabytes: float
    round: int
    mode: str
    cpu_s: float
    workers_s: float
    wall_s: float
    kafka_cpu_s: float
    load: float
    input_bytes: int
    output_rows: int
    output_sha256: str
    sent_bytes: int
    blocks: int
    dropped: int
    flows: int | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and range of some figures."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, figures: Sequence[float]) -> Spread:
        return cls(median(figures), min(figures), max(figures))

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f}-{self.high:.2f})"


def ratios(runs: Iterable[Run], over: str, under: str, figure: str) -> Spread | None:
    """Of `figure` (cpu_s or wall_s) in mode `over` to mode `under`: each run against that of its own round.

    So what slows a machine down for a while stands on both sides. None without a common round.
    """
    figures: dict[tuple[str, int], float] = {(run.mode, run.round): getattr(run, figure) for run in runs}
    pairs = [
        value / figures[under, number]
        for (mode, number), value in figures.items()
        if mode == over and (under, number) in figures
    ]
    return Spread.of(pairs) if pairs else None


def unequal(runs: Iterable[Run]) -> list[str]:
    """What is wrong with the runs of one case and size: other outputs than stock's, lineage that was lost."""
    runs = list(runs)
    outputs = {(run.output_rows, run.output_sha256) for run in runs}
    problems = [f"{len(outputs)} different outputs"] if len(outputs) > 1 else []
    return problems + [
        f"{run.mode}, round {run.round}: {run.dropped} blocks lost" for run in runs if run.dropped
    ]


def bytes_per_flow(runs: Iterable[Run], mode: str) -> float | None:
    """Sent bytes by flows, of the run of `mode` whose flows were counted."""
    for run in runs:
        if run.mode == mode and run.flows:
            return run.sent_bytes / run.flows
    return None


def markdown(result: Mapping[str, Any]) -> str:
    """The page for people. `result` is what the JSON file holds."""
    runs = [Run(**run) for run in result["runs"]]
    groups: dict[tuple[str, float], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.case, run.megabytes), []).append(run)
    problems = [f"{_name(key)}: {problem}" for key, group in groups.items() for problem in unequal(group)]
    sections = [
        "# What capture costs",
        "Made by `python -m perf.capture`; [README.md](../README.md) says how and what the words mean.",
        _facts(result),
        "## CPU: driver, JVM and Python workers, Kafka excluded",
        "A ratio is the median of the rounds, each run against its neighbour of the same round, with "
        "the range; behind it the target.",
        _ratio_table(groups, "cpu_s", has_targets=True),
        "## Wall time",
        _ratio_table(groups, "wall_s", has_targets=False),
        "## Seconds",
        "Medians: CPU, of it Python workers / wall.",
        _seconds_table(groups),
        "## What was sent",
        "Compressed, as Kafka stored it, events included. A flow counts once for each run that it passes, "
        "at the run's widest node.",
        _sent_table(groups),
        "## Equality",
        "\n".join(f"- {problem}" for problem in problems)
        or "The outputs of all modes are equal, byte for byte and file for file; no block was lost.",
    ]
    if result["left_out"]:
        sections += ["## Left out", "\n".join(f"- {reason}" for reason in result["left_out"])]
    return "\n\n".join(sections) + "\n"


def _name(key: tuple[str, float]) -> str:
    return f"{CASES[key[0]].title}, {key[1]:g} MB"


def _facts(result: Mapping[str, Any]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in result["about"].items())


def _by_group(
    groups: Mapping[tuple[str, float], list[Run]], cells: Callable[[Case, list[Run]], list[str]]
) -> list[list[str]]:
    return [[_name(key), *cells(CASES[key[0]], group)] for key, group in groups.items()]


def _ratio_table(groups: Mapping[tuple[str, float], list[Run]], figure: str, *, has_targets: bool) -> str:
    ran = {run.mode for group in groups.values() for run in group}
    shown = {name: modes for name, modes in RATIOS.items() if ran.issuperset(modes)}

    def cells(case: Case, group: list[Run]) -> list[str]:
        return [
            _against(ratios(group, *modes, figure), case.targets.get(name) if has_targets else None)
            for name, modes in shown.items()
        ]

    return table(["", *shown], _by_group(groups, cells))


def _against(spread: Spread | None, target: float | None) -> str:
    if spread is None:
        return "-"
    if target is None:
        return str(spread)
    return f"{spread}, {'**met**' if round(spread.median, 2) <= target else 'missed'}: <= {target:.2f}"


def _seconds_table(groups: Mapping[tuple[str, float], list[Run]]) -> str:
    ran = {run.mode for group in groups.values() for run in group}
    shown = [mode for mode in MODES if mode in ran]

    def cells(_case: Case, group: list[Run]) -> list[str]:
        by_mode = [[run for run in group if run.mode == mode] for mode in shown]
        kafka = [run.kafka_cpu_s for run in group if run.mode == LINEAGE]
        return [
            f"{median(run.cpu_s for run in runs):.2f}, {median(run.workers_s for run in runs):.2f} / "
            f"{median(run.wall_s for run in runs):.2f}"
            if runs
            else "-"
            for runs in by_mode
        ] + [f"{median(kafka):.2f}" if kafka else "-"]

    return table(["", *shown, "Kafka's own CPU, lineage"], _by_group(groups, cells))


def _sent_table(groups: Mapping[tuple[str, float], list[Run]]) -> str:
    rows = []
    for key, group in groups.items():
        for mode in MODES:
            counted = [run for run in group if run.mode == mode and run.flows is not None]
            if not counted:
                continue
            run, per_flow = counted[0], bytes_per_flow(group, mode)
            target = CASES[key[0]].bytes_per_flow if mode == LINEAGE else None
            # A few flows cannot pay for the events of their application.
            cell = f"{per_flow:.3f}" if per_flow is not None and per_flow < 1_000 else "-"
            if per_flow is not None and target is not None:
                cell += f", {'**met**' if round(per_flow, 2) <= target else 'missed'}: <= {target:.2f}"
            share = run.sent_bytes / run.input_bytes
            rows.append(
                [
                    _name(key),
                    mode,
                    f"{run.sent_bytes:,}",
                    f"{share:.5f}",
                    f"{run.flows:,}",
                    cell,
                    f"{run.blocks:,}",
                ]
            )
    head = ["", "mode", "bytes sent", "of the input", "flows", "bytes a flow", "blocks"]
    return table(head, rows)


def as_json(runs: Iterable[Run], about: Mapping[str, Any], left_out: Sequence[str]) -> dict[str, Any]:
    """The result file."""
    return {"about": dict(about), "left_out": list(left_out), "runs": [asdict(run) for run in runs]}

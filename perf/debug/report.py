"""From measured values to a page of Markdown. Values in, text out: measures nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from perf.capture.cases import CASES, LINEAGE, NOLIN, RATIOS, STOCK
from perf.capture.report import Run, ratios, unequal
from perf.debug.traces import Stored, Traced
from perf.tables import table
from perf.trace.report import percentile

#: What was asked for: CPU with lineage against the same operators without capture, and bytes of the input.
MOST_CAPTURE, MOST_STORED = 1.25, 0.30

#: What the papers say of the same figures, and on what. Nothing here is divided by it.
THEIRS = (
    ("capture against none", "1.10 to 1.26 on PigMix, 1.51 on WordCount", "less than 1.26 on L2, L6, L7"),
    ("bytes stored", "30 to 120 % of the output", "at most 30 %, WordCount 50 % of the input"),
    ("backward from one row", "-", "0.07 s at 500 MB, 18 s at 500 GB; 1.3 s at 500 GB with an index"),
)
_MACHINES = "Newt: a cluster of 2012, 13 to 306 GB. Titian: 16 machines of 2015, 500 MB to 1 TB."


def page(
    about: Mapping[str, Any],
    runs: Sequence[Run],
    left_out: Sequence[str],
    sizes: Sequence[Stored],
    traces: Sequence[Traced],
) -> str:
    sections = [
        "# Debugging by lineage: the figures of Newt and Titian",
        "Made by `python -m perf.debug`; [README.md](../README.md) says how.",
        "\n".join(f"- {name}: {value}" for name, value in about.items()),
        "## Theirs",
        f"{_MACHINES} Shares are of their own runs, and not to be divided by those below.",
        table(["figure", "Newt (2012)", "Titian (2018)"], THEIRS),
    ]
    if runs:
        sections += ["## What capture costs", _capture(runs), *_problems(runs, left_out)]
    if sizes:
        sections += ["## What is stored", _stored(sizes)]
    if traces:
        sections += [
            "## Backward from one row, by how many input rows there are",
            "Milliseconds over HTTP to the first page of the result, median and 99th percentile.",
            _traces(traces),
        ]
    return "\n\n".join(sections) + "\n"


def _capture(runs: Sequence[Run]) -> str:
    groups: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        groups[run.case].append(run)
    rows = []
    for name, group in groups.items():
        of_nolin = ratios(group, LINEAGE, NOLIN, "cpu_s")
        walls = [run.wall_s for run in group if run.mode == STOCK]
        sent = [run.sent_bytes / run.input_bytes for run in group if run.mode == LINEAGE]
        rows.append(
            [
                CASES[name].title,
                _against(of_nolin.median, MOST_CAPTURE, str(of_nolin)) if of_nolin else "-",
                str(ratios(group, *RATIOS["lineage/stock"], "cpu_s") or "-"),
                str(ratios(group, *RATIOS["lineage/stock"], "wall_s") or "-"),
                f"{median(walls):.2f}" if walls else "-",
                f"{100 * median(sent):.1f} %" if sent else "-",
            ]
        )
    shown = ["CPU, lineage / nolin", "CPU, lineage / stock", "wall, lineage / stock"]
    return table(["", *shown, "wall of stock, s", "sent, of the input"], rows)


def _problems(runs: Sequence[Run], left_out: Sequence[str]) -> list[str]:
    groups: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        groups[run.case].append(run)
    problems = [
        f"{CASES[name].title}: {problem}" for name, group in groups.items() for problem in unequal(group)
    ]
    said = "\n".join(f"- {problem}" for problem in [*problems, *left_out])
    return [said or "The outputs of all modes are equal, byte for byte; no block was lost."]


def _stored(sizes: Sequence[Stored]) -> str:
    rows = [
        [
            f"{CASES[size.case].title}, {size.megabytes:g} MB",
            f"{size.store_bytes:,}",
            _share(size.store_bytes, size.input_bytes, MOST_STORED),
            _share(size.store_bytes, size.output_bytes, None),
        ]
        for size in sizes
    ]
    return table(["", "bytes of the flow store", "of the input", "of the output"], rows)


def _share(part: int, whole: int, most: float | None) -> str:
    if not whole:
        return "-"
    text = f"{100 * part / whole:.1f} %"
    return text if most is None else _against(part / whole, most, text)


def _against(value: float, most: float, text: str) -> str:
    return f"{text}, {'**met**' if round(value, 2) <= most else 'missed'}: <= {most:g}"


def _traces(traces: Sequence[Traced]) -> str:
    groups: dict[tuple[str, int], list[Traced]] = defaultdict(list)
    for trace in traces:
        groups[trace.case, len(str(trace.sources))].append(trace)
    rows = []
    for (case, _), group in sorted(groups.items()):
        sources = [trace.sources for trace in group]
        firsts, agains = [trace.first_ms for trace in group], [trace.again_ms for trace in group]
        rows.append(
            [
                CASES[case].title,
                f"{min(sources):,} to {max(sources):,}" if len(set(sources)) > 1 else f"{sources[0]:,}",
                str(len(group)),
                f"{median(firsts):.1f} / {percentile(firsts, 0.99):.1f}",
                f"{median(agains):.1f} / {percentile(agains, 0.99):.1f}",
                "yes" if all(trace.exact for trace in group) else "no",
            ]
        )
    return table(["", "input rows", "rows asked", "first time", "again", "exact"], rows)

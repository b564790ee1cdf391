"""From answers to figures and a page of Markdown. Values in, text out: measures nothing."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from perf.api.clients import Answered
from perf.ingest.report import percentile

#: What DESIGN.md asks for: a minute without an error.
ERRORS = 0
_SHOWN_ERRORS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One kind of question; times in ms, `kilobytes` as sent, on average."""

    kind: str
    asked: int
    errors: int
    median: float
    p95: float
    p99: float
    largest: float
    kilobytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What the JSON file holds. `wrong`: the commonest errors and how often each came."""

    about: Mapping[str, Any]
    clients: int
    seconds: float
    rows: Sequence[Row]
    wrong: Mapping[str, int]
    cpu_s: float
    peak_mib_before: float
    peak_mib: float


def rows_of(answers: Iterable[Answered], kinds: Sequence[str]) -> list[Row]:
    """In the order of `kinds`, and all together at the end."""
    collected = list(answers)
    groups = [(kind, [answer for answer in collected if answer.kind == kind]) for kind in kinds] + [
        ("all", collected)
    ]
    return [_row(kind, group) for kind, group in groups if group]


def _row(kind: str, group: Sequence[Answered]) -> Row:
    times = [answer.ms for answer in group]
    return Row(
        kind=kind,
        asked=len(group),
        errors=sum(1 for answer in group if answer.wrong),
        median=round(statistics.median(times), 1),
        p95=round(percentile(times, 0.95), 1),
        p99=round(percentile(times, 0.99), 1),
        largest=round(max(times), 1),
        kilobytes=round(statistics.mean(answer.received for answer in group) / 1000, 1),
    )


def wrong_of(answers: Iterable[Answered]) -> dict[str, int]:
    counted = Counter(f"{answer.kind}: {answer.wrong}" for answer in answers if answer.wrong)
    return dict(counted.most_common(_SHOWN_ERRORS))


def as_json(result: Result) -> dict[str, Any]:
    return asdict(result)


def markdown(result: Result) -> str:
    """The page for people."""
    total = result.rows[-1]
    verdict = "**met**" if total.errors <= ERRORS else "missed"
    lines = [
        "# The API under load",
        "Made by `python -m perf.api`; [README.md](../README.md) says how and what the words mean.",
        "\n".join(f"- {name}: {value}" for name, value in result.about.items()),
        f"{result.clients} clients asked for {result.seconds:g} s: {total.asked:,} questions, "
        f"{total.asked / result.seconds:,.0f} a second, {total.errors} errors ({verdict}: {ERRORS}). "
        f"`lineage serve` used {result.cpu_s:.1f} s of CPU; the peak of its memory was "
        f"{result.peak_mib_before:.0f} MiB before, when one client had asked, and {result.peak_mib:.0f} MiB "
        "afterwards.",
        "\n".join(
            [
                "| ms | asked | errors | median | 95 % | 99 % | largest | kB an answer |",
                "| --- | --- | --- | --- | --- | --- | --- | --- |",
                *(
                    f"| {row.kind} | {row.asked:,} | {row.errors} | {row.median:.1f} | {row.p95:.1f} "
                    f"| {row.p99:.1f} | {row.largest:.1f} | {row.kilobytes:.1f} |"
                    for row in result.rows
                ),
            ]
        ),
    ]
    if result.wrong:
        lines += ["## Errors", "\n".join(f"- {count} x {text}" for text, count in result.wrong.items())]
    return "\n\n".join(lines) + "\n"

"""From measured values to a page of Markdown. Values in, text out: measures nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from perf.explain.asking import Asked
from perf.explain.cases import Workload
from perf.explain.enough import Enough
from perf.explain.proof import Proof
from perf.explain.stores import Stored
from perf.explain.sufficiency import Sufficient
from perf.tables import table
from perf.trace.report import percentile

#: What was asked for: milliseconds at the median, rows that explain a label, the share of the input.
MOST_COLD_MS, MOST_WARM_MS = 150.0, 20.0
LABEL_ROWS = range(3, 6)
#: Runs and seconds until a record comes out again.
MOST_RUNS, MOST_S = 10, 1.0
MOST_SHARE = 0.01
#: A graph that most of the time is spent on, and one that takes hours.
_SMALLER, _LARGER = 100_000, 10_000_000

_PAPER = "Chothia, Liagouris, McSherry, Roscoe (PVLDB 9(12), 2016)"
_MACHINES = (
    f"{_PAPER}: Rust, 32 threads, 512 GB, everything in memory. Here: PySpark as it is, flows in files. "
    "Sizes and shares compare; times only by their order of magnitude."
)
#: (figure, theirs, workload, which of ours).
_THEIRS = (
    ("labels of a graph: edges that explain one", "3 to 5, at most the diameter", "components", "size"),
    ("labels of a graph: time", "mostly 10 ms or less", "components", "ms"),
    ("labels of a graph: input behind one, without selection", "up to 10^6 edges", "components", "plain"),
    ("stable matching: time", "mostly less than 1 s, some more", "matching", "ms"),
    ("stable matching: runs until a match comes out again", "up to 100", "matching", "runs"),
    ("unique words: counts that their trace alone gives again", "none", "unique-counts", "verified"),
    ("share of the input", "less than 1 %", "", "shares"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnoughTested:
    """What a session found to be enough; `proof`: by PySpark without lineage, of those for which it did."""

    answers: Sequence[Enough]
    proof: Proof


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One workload. `proof_s`: seconds of the run that has tested all explanations together."""

    workload: Workload
    stored: Stored
    asked: Asked
    proof: Proof
    proof_s: float
    sufficient: Sequence[Sufficient] = ()
    enough: EnoughTested | None = None

    @property
    def sizes(self) -> list[int]:
        return [explained.total for explained in self.asked.explained]

    @property
    def of(self) -> int:
        return max(explained.of for explained in self.asked.explained)

    @property
    def share(self) -> float:
        return median(self.sizes) / self.of


def page(about: Mapping[str, Any], measured: Sequence[Measured]) -> str:
    by_name = {result.workload.name: result for result in measured}
    sections = [
        "# Explanations: the few rows that decided",
        "Made by `python -m perf.explain`; [README.md](../README.md) says how.",
        "\n".join(f"- {name}: {value}" for name, value in about.items()),
        "## Sizes",
        "Rows of inputs. `alone`: of so many explanations so many gave their record again, when PySpark ran "
        "the job on their rows alone, without lineage.",
        _sizes(measured),
        "## Milliseconds over HTTP",
        "New: the first question to a new `lineage serve`, which opens the application for it. Cold: the "
        "first explanation of a new one that was asked for the graph before, as the page does. The system "
        "may have the files in memory. First: of a row that a running service was not asked for before. "
        "Warm: the same rows again. A plain trace is not counted meanwhile. Median, and 95th percentile.",
        _times(measured),
        "## Beside the paper",
        _MACHINES,
        table(["figure", "paper", "here"], _beside(by_name)),
        "## What the jobs took",
        _jobs(measured),
        *_enough(measured),
        *_by_command(measured),
        *_notes(by_name),
    ]
    return "\n\n".join(sections) + "\n"


def _sizes(measured: Sequence[Measured]) -> str:
    rows = []
    for result in measured:
        sizes, of = result.sizes, result.of
        kinds = sorted({explained.kind for explained in result.asked.explained})
        rows.append(
            [
                result.workload.title,
                f"{of:,}",
                _plain(result),
                _median(result),
                f"{percentile(sizes, 0.99):,}",
                f"{max(sizes):,}",
                _against(result.share, MOST_SHARE, f"{100 * result.share:.4f} %"),
                " and ".join(kinds),
                _verified(result),
            ]
        )
    shown = ["plain trace, median", "explanation, median", "99th percentile", "largest", "share", "kind"]
    return table(["", "input", *shown, "alone"], rows)


def _plain(result: Measured) -> str:
    plain = result.asked.plain
    return f"{median(plain):,.0f} (of {len(plain)})" if plain else "not counted"


def _median(result: Measured) -> str:
    size = median(result.sizes)
    if result.workload.name != "components":
        return f"{size:g}"
    return f"{size:g}, {_met(size in LABEL_ROWS)}: {LABEL_ROWS[0]} to {LABEL_ROWS[-1]}"


def _verified(result: Measured) -> str:
    proof = result.proof
    said = f"{proof.verified:,} of {proof.tested:,}"
    if not result.workload.is_sufficient:
        return f"{said}: needs rows of other documents, too"
    return f"{said}, {_met(proof.verified == proof.tested)}: all"


def _times(measured: Sequence[Measured]) -> str:
    rows = []
    for result in measured:
        first = [explained.first_ms for explained in result.asked.explained]
        new, cold, warm = result.asked.new_ms, result.asked.cold_ms, result.asked.warm_ms
        rows.append(
            [
                result.workload.title,
                _ms(new) if new else "-",
                _against(median(cold), MOST_COLD_MS, _ms(cold)) if cold else "-",
                _ms(first),
                _against(median(warm), MOST_WARM_MS, _ms(warm)),
                f"{len(new)}, {len(cold)}, {len(first):,}",
            ]
        )
    return table(["", "new", "cold", "first", "warm", "questions"], rows)


def _ms(values: Sequence[float]) -> str:
    return f"{median(values):.1f} / {percentile(values, 0.95):.1f}"


def _beside(by_name: Mapping[str, Measured]) -> Iterator[list[str]]:
    for figure, theirs, name, which in _THEIRS:
        if which == "shares":
            shares = [100 * result.share for result in by_name.values()]
            yield [figure, theirs, f"{min(shares):.4f} to {max(shares):.4f} %"]
        elif name in by_name:
            yield [figure, theirs, _ours(by_name[name], which)]


def _ours(result: Measured, which: str) -> str:
    if which == "size":
        return f"median {median(result.sizes):g}, largest {max(result.sizes):,}"
    if which == "ms":
        cold = f"{median(result.asked.cold_ms):.0f} ms cold, " if result.asked.cold_ms else ""
        return f"{cold}{median(result.asked.warm_ms):.1f} ms warm"
    if which == "plain":
        return _plain(result)
    if which == "runs":
        if result.enough is not None:
            runs = [one.runs for one in result.enough.answers]
            return f"median {median(runs):g}, most {max(runs)}, with the list of who proposes"
        is_enough = result.proof.verified == result.proof.tested
        return f"{'1' if is_enough else 'more than 1'}, of the pair alone: nobody's list is demanded"
    return f"{result.proof.verified:,} of {result.proof.tested:,}"


def _jobs(measured: Sequence[Measured]) -> str:
    rows = [
        [
            result.workload.title,
            f"{result.stored.job_s:.0f}",
            f"{result.stored.stored_s:.0f}",
            f"{result.stored.flows_bytes:,}",
            f"{max(explained.turns for explained in result.asked.explained)}",
            f"{result.proof_s:.0f}",
        ]
        for result in measured
    ]
    shown = ["job with lineage, s", "then stored, s", "bytes of the flow store", "turns on the way"]
    return table(["", *shown, "test of all, s"], rows)


def _enough(measured: Sequence[Measured]) -> Iterator[str]:
    """What a session has added."""
    rows = [_row_of_enough(result, result.enough) for result in measured if result.enough]
    if rows:
        yield "## With rows that were added"
        yield (
            "In a session, `explain(...).sufficient(by_spark=False)` runs the operations in one task, and "
            "adds rows until the record comes out. All were then tested together: PySpark without lineage, "
            "on their rows alone. Demanded: all rows of who proposes, by `including=`. With a run by Spark: "
            "`.sufficient()`, which verifies the rows by itself."
        )
        shown = ["alone", "rows, median", "99th percentile", "largest", "demanded", "of the input, at most"]
        shown += ["runs, median", "most", "s, median", "95th percentile", "with a run by Spark, s, median"]
        yield table(["", *shown], rows)


def _row_of_enough(result: Measured, tested: EnoughTested) -> list[str]:
    answers = tested.answers
    sizes, runs, seconds = (
        [one.total for one in answers],
        [one.runs for one in answers],
        [one.seconds for one in answers],
    )
    checked = [one.checked_s for one in answers if one.checked_s is not None]
    share, verified = 100 * max(sizes) / result.of, tested.proof.verified
    return [
        result.workload.title,
        f"{verified:,} of {len(answers):,}, {_met(verified == len(answers))}: all",
        f"{median(sizes):g}",
        f"{percentile(sizes, 0.99):,}",
        f"{max(sizes):,}",
        f"{median(one.demanded for one in answers):g}",
        _against(share, 100 * MOST_SHARE, f"{share:.4f} %"),
        f"{median(runs):g}",
        _against(max(runs), MOST_RUNS, f"{max(runs)}"),
        _against(median(seconds), MOST_S, f"{median(seconds):.2f}"),
        f"{percentile(seconds, 0.95):.2f}",
        f"{median(checked):.2f} (of {len(checked)})" if checked else "-",
    ]


def _by_command(measured: Sequence[Measured]) -> Iterator[str]:
    """What `lineage explain --sufficient` has added."""
    rows = [
        [
            result.workload.title,
            f"{sum(one.is_verified for one in result.sufficient)} of {len(result.sufficient)}",
            f"{median(sizes):g}, {max(sizes)}",
            f"{100 * max(sizes) / result.of:.4f} %",
            f"{median(one.runs for one in result.sufficient):g}",
            f"{median(one.seconds for one in result.sufficient):.0f}",
        ]
        for result in measured
        if (sizes := [one.rows for one in result.sufficient])
    ]
    if rows:
        yield "## With rows that the command added"
        yield (
            "`lineage explain --sufficient` runs the job on the rows, and adds some until the record comes "
            "out. PySpark without lineage makes the last run."
        )
        shown = ["verified", "rows, median and largest", "of the input, at most", "runs, median", "s, median"]
        yield table(["", *shown], rows)


def _notes(by_name: Mapping[str, Measured]) -> Iterator[str]:
    """What a graph of 10^7 edges would take, at the rates of the one that was measured."""
    result = by_name.get("components")
    if result is None or not _SMALLER <= result.workload.rows < _LARGER:
        return
    times = _LARGER / result.workload.rows
    minutes = times * (result.stored.job_s + result.stored.stored_s) / 60
    gigabytes = times * result.stored.flows_bytes / 10**9
    yield (
        f"{_LARGER:,} edges, at these rates: {minutes:.0f} minutes and {gigabytes:.1f} GB of flows. "
        f"`--edges {_LARGER} --workloads components` measures it."
    )


def _against(value: float, most: float, text: str) -> str:
    return f"{text}, {_met(value <= most)}: <= {most:g}"


def _met(is_met: bool) -> str:
    return "**met**" if is_met else "missed"

"""What runs of Spark's tests without and with lineage have in common and where they differ, as a page."""

from __future__ import annotations

import os
import platform
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from scripts.spark_suite_modules import Suite

#: Without lineage, with lineage.
WAYS = ("off", "on")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One module, one way."""

    outcomes: Mapping[str, str]  # test -> how it ended
    seconds: float
    applications: int  # that Spark knows of
    with_lineage: int  # applications that came on lineage-node
    captured: int  # runs of chains in Python workers
    lost: int  # messages, as far as the applications' ends tell
    failed: int = 0  # queries whose plans could not be rewritten


@dataclass(slots=True)
class Compared:
    """One module: the first run of each way counts, the further ones are about its differences."""

    module: str
    runs: dict[str, list[Run]] = field(default_factory=lambda: {way: [] for way in WAYS})

    @property
    def off(self) -> Run:
        return self.runs["off"][0]

    @property
    def on(self) -> Run:
        return self.runs["on"][0]

    def endings(self, test: str, way: str) -> set[str]:
        return {run.outcomes.get(test, "did not run") for run in self.runs[way]}

    def differences(self) -> list[str]:
        """Tests that ended with lineage as they never ended without, each time."""
        tests = {test for runs in self.runs.values() for run in runs for test in run.outcomes}
        return sorted(
            test for test in tests if self.endings(test, "on").isdisjoint(self.endings(test, "off"))
        )

    def unsteady(self) -> list[str]:
        """Tests that ended in several ways with the same setting; no difference, but worth a look."""
        tests = {test for runs in self.runs.values() for run in runs for test in run.outcomes}
        return sorted(test for test in tests if any(len(self.endings(test, way)) > 1 for way in WAYS))


def kinds(outcomes: Mapping[str, str]) -> Counter[str]:
    """How many passed, failed, ...: the outcomes without their reasons."""
    return Counter(outcome.split(":")[0].split(" (")[0] for outcome in outcomes.values())


def in_short(compared: Compared) -> str:
    """One line about one module."""
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds(compared.off.outcomes).items()))
    return (
        f"{compared.module}: {counts}; {len(compared.differences())} differences; lineage of "
        f"{compared.on.with_lineage}/{compared.on.applications} applications; "
        f"{compared.off.seconds:.0f} s without, {compared.on.seconds:.0f} s with"
    )


def page(results: Sequence[Compared], suite: Suite, modules: int, checkout: str, conf: Sequence[str]) -> str:
    """The Markdown report on the results of a suite, of `modules` that there are."""
    project, examples = suite.project, ", and the examples in PySpark's docstrings," * bool(suite.examples)
    what = suite.of if suite.of != project else "tables"
    on = [compared.on for compared in results]
    differences = [(compared, test) for compared in results for test in compared.differences()]
    unsteady = [(compared, test) for compared in results for test in compared.unsteady()]
    facts = [
        (f"tests from a checkout of {project}", checkout),
        ("installed PySpark", pyspark.__version__),
        ("Python, Java", f"{platform.python_version()}, {java_version()}"),
        ("further conf", ", ".join(f"`{option}`" for option in conf) or "none"),
        ("modules", f"{len(results)} of {modules}{'; the others were not run' * (len(results) < modules)}"),
        ("tests", f"{sum(len(compared.off.outcomes) for compared in results):,}"),
        ("**differences**", f"**{len(differences)}**"),
        (
            "applications with lineage, of all",
            f"{sum(run.with_lineage for run in on):,} of {sum(run.applications for run in on):,}",
        ),
        ("captured runs", f"{sum(run.captured for run in on):,}"),
        ("messages lost", f"{sum(run.lost for run in on):,}"),
        ("queries whose plans could not be rewritten", f"{sum(run.failed for run in on):,}"),
    ]
    text = [
        f"# {project}'s own tests of {what}, without and with lineage",
        "",
        f"This page is the last result of `{suite.command}`.",
        f"That command runs its tests of {what}{examples} on the",
        "installed PySpark. It runs each of them once without lineage, and once with",
        "`spark.lineage.enabled=true` and a real Kafka. A test that ends differently",
        "with lineage is a defect of the agent.",
        "",
        "A test that fails both ways proves nothing. The checkout may be of another version than the",
        "installed PySpark, or a package or the jar of Spark's own tests may be missing. Such tests are",
        "listed below.",
        "",
        *table(("", ""), facts),
        "",
        "## Differences",
        "",
        *(outcome_table(differences) if differences else ["None."]),
        "",
    ]
    if unsteady:
        text += ["## Several outcomes with the same setting", "", *outcome_table(unsteady), ""]
    headings = sorted({kind for compared in results for kind in kinds(compared.off.outcomes)})
    headings.sort(key=lambda kind: kind != "passed")
    text += ["## Modules", ""]
    text += table(
        ("module", *headings, "applications with lineage", "messages lost", "s without", "s with"),
        [
            (
                f"`{compared.module}`",
                *(str(kinds(compared.off.outcomes)[kind] or "") for kind in headings),
                f"{compared.on.with_lineage} of {compared.on.applications}",
                f"{compared.on.lost:,}" if compared.on.lost else "",
                f"{compared.off.seconds:.0f}",
                f"{compared.on.seconds:.0f}",
            )
            for compared in results
        ],
    )
    text += ["", "## Not passed, either way", ""]
    text += table(
        ("test", "outcome"),
        [
            (f"`{test}`", outcome)
            for compared in results
            for test, outcome in sorted(compared.off.outcomes.items())
            if outcome != "passed"
        ],
    )
    return "\n".join(text) + "\n"


def outcome_table(tests: Sequence[tuple[Compared, str]]) -> list[str]:
    return table(
        ("test", "without lineage", "with lineage"),
        [
            (f"`{test}`", *("; ".join(sorted(compared.endings(test, way))) for way in WAYS))
            for compared, test in tests
        ],
    )


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    cells = [headings, ["---"] * len(headings), *rows]
    return [
        f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in row)} |"
        for row in cells
    ]


def checkout_version(source: Path, package: str = "pyspark") -> str:
    """Its version and, where git knows it, its commit."""
    file = source / "python" / package / "version.py"
    said = [line for line in file.read_text().splitlines() if line.startswith("__version__")]
    version = said[0].split("=")[1].split("#")[0].strip(" \"'") if said else "of an unknown version"
    commit = subprocess.run(
        ["git", "-C", str(source), "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    is_known = (source / ".git").exists() and commit.returncode == 0
    return f"{version}, commit {commit.stdout.strip()}" if is_known else version


def java_version() -> str:
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else "java"
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    return said.split('"')[1] if said.count('"') >= 2 else "unknown"

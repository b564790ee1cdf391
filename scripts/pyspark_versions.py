"""Runs tests on several versions of PySpark, each in an environment of its own: the core of them, or all.

    python3 -m scripts.pyspark_versions [--all] [--workers N] [VERSION ...]

An environment is made in .cache/pyspark-VERSION the first time and whenever pyproject.toml has changed since.
Prints the tests' own words as they come and one table at the end, in the form of docs/versions.md. Ends
with 1 if a test of any version failed or a version could not be tested.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from scripts.environment import ROOT, EnvironmentFailed, alone, make, say

#: The last release of each line of PySpark that the agent supports.
VERSIONS = ("3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0")
#: Of its line are the newest table formats: `make test-all` runs on it what depends on PySpark.
TABLES = "4.1.4"
#: What depends on PySpark: operators and the reading of text on its classes, captures, traces and values in
#: real jobs, records that make jobs fail, replays and their guard, jobs with and without the agent, every way
#: to start it.
CORE = (
    "tests/unit/spark_agent/worker/test_operators.py",
    "tests/unit/spark_agent/worker/test_derived_values.py",
    "tests/unit/spark_agent/worker/test_text_reader.py",
    "tests/spark/rdd/test_operations.py",
    "tests/spark/rdd/test_more_operations.py",
    "tests/spark/rdd/test_actions.py",
    "tests/spark/rdd/test_sources.py",
    "tests/spark/rdd/test_unread.py",
    "tests/spark/rdd/test_iterative.py",
    "tests/spark/rdd/test_values.py",
    "tests/spark/rdd/test_traps.py",
    "tests/spark/rdd/test_invisible.py",
    "tests/spark/rdd/test_failures.py",
    "tests/spark/rdd/test_slow_records.py",
    "tests/spark/client/test_tracing_in_session.py",
    "tests/spark/client/test_replay_in_session.py",
    "tests/spark/jvm/test_linkage.py",
    "tests/spark/jvm/test_tap.py",
    "tests/spark/sql/test_operators.py",
    "tests/spark/sql/test_explain.py",
    "tests/spark/sql/test_explanations.py",
    "tests/spark/sql/test_explained_loops.py",
    "tests/spark/sql/test_failed_cache_fills.py",
    "tests/spark/sql/test_failures.py",
    "tests/spark/replay/test_restriction.py",
    "tests/spark/replay/test_frame_sources.py",
    "tests/spark/replay/test_outputs.py",
    "tests/spark/replay/test_replay_command.py",
    "tests/spark/replay/test_reruns.py",
    "tests/spark/replay/test_sift.py",
    "tests/spark/replay/hostile/test_jobs.py",
    "tests/spark/replay/hostile/test_programs.py",
    "tests/spark/rdd/test_persistence.py",
    "tests/spark/rdd/test_batch_formats.py",
    "tests/spark/rdd/test_upper_bounds.py",
    "tests/spark/rdd/test_dstreams.py",
    "tests/e2e/start/test_ways_to_start.py",
)
#: All that imports PySpark or starts it; what takes long is left to the version that is pinned.
ALL = ("tests/spark", "tests/unit/spark_agent", "tests/e2e/start", "-m", "not thorough")
#: A line of PySpark, and what the ones before it make Python warn of, which would fail some test: sockets
#: that are left to the garbage collector, a module of Python's that is deprecated, names of pandas' that are.
WARNINGS = (
    ((4, 3), "ignore:unclosed <socket.socket:ResourceWarning"),
    ((4, 0), "ignore:distutils:DeprecationWarning"),
    ((4, 0), "ignore::FutureWarning"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    version: str
    passed: int
    failed: int
    skipped: int
    seconds: float
    problem: str = ""

    @property
    def is_good(self) -> bool:
        return not self.problem and self.failed == 0 and self.passed > 0


def environment(version: str) -> Path:
    """The Python of the environment of `version`, made or brought up to date; raises EnvironmentFailed."""
    folder = ROOT / ".cache" / f"pyspark-{version}"
    wants, stamp = (ROOT / "pyproject.toml").read_text(encoding="utf-8"), folder / "made-for.toml"
    with alone(folder):
        if not stamp.exists() or stamp.read_text(encoding="utf-8") != wants:
            what = f"PySpark {version}, lineage-master and what its tests need"
            make(folder, [(what, ["--editable", f"{ROOT}[test]", f"pyspark=={version}"])])
            stamp.write_text(wants, encoding="utf-8")
    return folder / "bin" / "python"


def run_tests(version: str, tests: Sequence[str] = CORE) -> Outcome:
    """The outcome of these tests on `version`."""
    began = time.monotonic()
    try:
        python = environment(version)
    except (EnvironmentFailed, OSError) as error:
        return Outcome(version=version, passed=0, failed=0, skipped=0, seconds=0, problem=str(error))
    report = python.parents[1] / "report.xml"
    report.unlink(missing_ok=True)
    say(f"\nPySpark {version}: {' '.join(tests)}")
    options = ["-q", "--require-services", "-o", "cache_dir=.cache/pytest", f"--junit-xml={report}"]
    for line, warning in WARNINGS:
        options += ["-W", warning] if _numbers(version) < line else []
    began = time.monotonic()
    subprocess.run(
        [python, "-m", "pytest", *options, *tests],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return outcome(version, report, time.monotonic() - began)


def _numbers(version: str) -> tuple[int, ...]:
    """(4, 3) of 4.3.0."""
    return tuple(int(part) for part in version.split(".")[:2])


def outcome(version: str, report: Path, seconds: float) -> Outcome:
    """What pytest's `report` says; one that is not there is a problem."""
    try:
        suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    except (OSError, ElementTree.ParseError):
        problem = "pytest gave no report: see what it printed"
        return Outcome(version=version, passed=0, failed=0, skipped=0, seconds=seconds, problem=problem)
    total, failures, errors, skipped = (
        sum(int(suite.get(name, 0)) for suite in suites)
        for name in ("tests", "failures", "errors", "skipped")
    )
    failed = failures + errors
    return Outcome(
        version=version, passed=total - failed - skipped, failed=failed, skipped=skipped, seconds=seconds
    )


def table(outcomes: Sequence[Outcome]) -> str:
    """The outcomes as a table in Markdown, problems below it."""
    lines = ["| PySpark | passed | failed | skipped | seconds |", "|---|---|---|---|---|"]
    lines += [
        f"| {run.version} | {run.passed} | {run.failed} | {run.skipped} | {run.seconds:.0f} |"
        for run in outcomes
    ]
    lines += [f"PySpark {run.version}: {run.problem}" for run in outcomes if run.problem]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m scripts.pyspark_versions")
    parser.add_argument(
        "versions",
        nargs="*",
        metavar="VERSION",
        help=f"of PySpark (the last of each line; with --all {TABLES})",
    )
    parser.add_argument("--all", action="store_true", help="all tests that depend on PySpark, not the core")
    parser.add_argument("--workers", type=int, default=1, help="tests side by side (1)")
    options = parser.parse_args(arguments)
    tests = list(ALL if options.all else CORE)
    if options.workers > 1:
        tests += ["-n", str(options.workers), "--dist", "loadfile", "--no-loadscope-reorder"]
    outcomes = []
    try:
        for version in options.versions or ([TABLES] if options.all else VERSIONS):
            outcomes.append(run_tests(version, tests))
    except KeyboardInterrupt:
        return 130
    say(f"\n{table(outcomes)}")
    return 0 if all(run.is_good for run in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Records that make tasks fail: the culprit's input rows are the planted ones, and nothing wrong is exact."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext

from lineage_service.lineage import Failure, Failures
from lineage_service.queries import TraceQuery
from spark_agent import contract
from tests.support.lanes import sampled, selected
from tests.support.spark.application import Application, run_application
from tests.support.spark.failing_pipelines import BAD, CASES, KEYS, ROW, ROWS, PlantedError, bad, random_chain

ATTEMPTS = 2
#: A few more of what `thorough` has many of.
SEEDS = range(2)


@dataclass(frozen=True)
class Ran:
    application: Application
    failures: Failures
    sinks: dict[str, set[int]]  # the sinks that each job has made
    folder: Path

    def of(self, name: str) -> list[Failure]:
        """The failures of a job, by the actions that it ran."""
        numbers = self.sinks[name]
        stages = {
            event["stage"]
            for event in self.application.events
            if event["type"] == contract.RUN_FAILED and event["action"] in numbers
        }
        return [failure for failure in self.failures.failures if failure.stage in stages]


def flaky(record: Any) -> Any:
    return bad(record) if TaskContext.get().attemptNumber() == 0 else record


def read(context: Any, path: Path) -> Any:
    fields = context.textFile(str(path), 2).map(lambda line: line.split("|"))
    return fields.map(lambda parts: (parts[0], int(parts[1])))


def ran(kafka: Any, folder: Path, jobs: dict[str, Any], **conf: str) -> Ran:
    """Each job fails or not; what became of them."""
    lines = folder / "in.txt"
    lines.write_text("".join(f"{number % KEYS}|{number}\n" for number in range(ROWS)))
    sinks: dict[str, set[int]] = {}

    def job(context: Any) -> None:
        from spark_agent import agent

        active = agent.active()
        assert active is not None
        pairs = read(context, lines)  # of which no job ends well
        for at, (name, run) in enumerate(jobs.items()):
            before = active.session.scope.next_number()
            with contextlib.suppress(Exception):
                run(pairs, folder / f"out-{at}")
            sinks[name] = set(range(before, active.session.scope.next_number()))

    _, application = run_application(
        kafka.bootstrap_servers, folder / "store", job, master=f"local[2,{ATTEMPTS}]", **conf
    )
    assert application is not None
    return Ran(application, application.questions.failures(application.application_id), sinks, folder)


@pytest.fixture(scope="module")
def cases(request: pytest.FixtureRequest, kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    jobs: dict[str, Any] = {name: case.run for name, case in selected(request, CASES).items()}
    jobs["flaky"] = lambda pairs, folder: read(pairs.ctx, folder.parent / "in.txt").map(flaky).count()
    jobs["shuffled"] = lambda pairs, _: pairs.repartition(3).map(bad).collect()
    jobs |= {f"chain {seed}": chain(seed) for seed in SEEDS}
    return ran(kafka, tmp_path_factory.mktemp("failures"), jobs)


def chain(seed: int) -> Any:
    return lambda pairs, _: random_chain(pairs, seed).collect()


def rows_of(failure: Failure) -> frozenset[int]:
    return frozenset(row.row for row in failure.sources)


@pytest.mark.parametrize("name", sampled(CASES, 4))
def test_the_culprit_is_the_planted_record(name: str, cases: Ran) -> None:
    case, failures = CASES[name], cases.of(name)
    assert failures
    assert {(failure.error, failure.recovered) for failure in failures} == {(case.error, False)}
    assert all(rows_of(failure) == ROW for failure in failures if failure.exact and case.rows is None)
    assert all(rows_of(failure) >= ROW for failure in failures if case.is_planted), failures
    if case.rows is not None:
        (failure,) = failures
        assert (failure.attempts, failure.exact) == (ATTEMPTS, case.exact), failure.reason
        assert rows_of(failure) == case.rows
        assert all(row.text and row.text.endswith(f"|{row.row}") for row in failure.sources)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_chains(seed: int, cases: Ran) -> None:
    check_chain(cases, seed)


def check_chain(cases: Ran, seed: int) -> None:
    for failure in cases.of(f"chain {seed}"):
        assert failure.error == PlantedError.__name__
        assert failure.exact, failure.reason
        assert rows_of(failure) == ROW


def test_a_task_that_ends_well_in_the_end_has_recovered(cases: Ran) -> None:
    (failure,) = cases.of("flaky")
    assert (failure.attempts, failure.recovered, rows_of(failure)) == (1, True, ROW)


def test_a_trace_begins_at_the_record(cases: Ran) -> None:
    (failure,) = cases.of("shuffled")
    query = TraceQuery(direction="backward", failure=failure.failure)
    trace = cases.application.questions.trace(cases.application.application_id, query)
    sources = [record for node in trace.nodes if node.kind == "source" for record in node.records]
    assert [record.source.row for record in sources if record.source] == [BAD]


def test_failures_are_named_by_the_operation_and_the_line(cases: Ran) -> None:
    (failure,) = cases.of("shuffled")
    assert failure.name == "map"
    assert "test_failures.py:" in str(failure.call_site)
    assert "failing_pipelines.py:" in str(failure.frame)
    assert failure.message == f"planted ('{BAD % KEYS}', {BAD})"


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(100, 250, 30))
def test_many_random_chains(
    first: int, kafka: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seeds = range(first, first + 30)
    many = ran(kafka, tmp_path, {f"chain {seed}": chain(seed) for seed in seeds})
    for seed in seeds:
        check_chain(many, seed)
    counts = Counter(
        "exact" if all(failure.exact for failure in many.of(f"chain {seed}")) else "not exact"
        for seed in seeds
        if many.of(f"chain {seed}")
    )
    with capsys.disabled():
        print(f"\nrandom chains from {first}: {dict(counts)} of {len(seeds)}")
    assert counts["exact"] > len(seeds) // 3


PROGRAM = """
import sys
from pyspark import SparkContext
context = SparkContext()
context.setLogLevel("OFF")
pairs = context.parallelize(range(20), 2)
def fails(number):
    if number == 13:
        raise ValueError(f"planted {number}")
    return number
pairs.filter(lambda number: number > 2).map(fails).count()
"""


@pytest.mark.thorough
@pytest.mark.parametrize("is_away", [False, True])
def test_a_program_fails_as_without_lineage(is_away: bool, kafka: Any, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(PROGRAM)
    servers = "127.0.0.1:9" if is_away else kafka.bootstrap_servers
    ended = [submitted(tmp_path, servers, is_on=is_on) for is_on in (False, True)]
    assert ended[0] == ended[1]
    assert ended[0][0] == 1
    spooled = list((tmp_path / "spool").rglob("*"))
    assert bool(spooled) is is_away


def submitted(folder: Path, servers: str, *, is_on: bool) -> tuple[int, list[str]]:
    """(exit code, what stands in standard error of the program's own error)."""
    conf = {
        "spark.ui.enabled": "false",
        "spark.lineage.enabled": str(is_on).lower(),
        "spark.lineage.quiet": "true",
        "spark.lineage.kafka.bootstrap.servers": servers,
        "spark.lineage.spool.dir": str(folder / "spool"),
    }
    arguments = " ".join(f"--conf {name}={value}" for name, value in conf.items())
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": f"--master local[2] {arguments} pyspark-shell"}
    command = [sys.executable, str(folder / "job.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, list(own_lines(done.stderr))


def own_lines(text: str) -> Iterator[str]:
    """Without the frames of PySpark: lineage calls the functions of a chain itself."""
    for line in text.splitlines():
        is_of_program = line.startswith("  File") and "job.py" in line
        if is_of_program or line.startswith(("ValueError", "Traceback", "py4j")):
            yield line

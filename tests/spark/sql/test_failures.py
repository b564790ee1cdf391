"""Rows that make queries fail: what is called exact is the planted row, and a bound has it."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext, SparkFiles
from pyspark.sql import SparkSession

from lineage_service.errors import NotFoundError
from lineage_service.lineage import Failure, Failures
from lineage_service.queries import TraceQuery
from lineage_service.tracing.query import failure_bounds, failure_sources
from spark_agent.worker.function_failures import FILE_PREFIX
from tests.support.lanes import sampled, selected
from tests.support.spark.application import Application, run_application
from tests.support.spark.failing_queries import (
    BAD,
    CASES,
    FILES,
    ROWS,
    Failing,
    Inputs,
    random_query,
    udf,
    write_inputs,
)

ATTEMPTS = 2
#: So many rows of a failure are listed here: all that a bound may have.
LISTED = 1_000
#: Why no rows can be named.
INHERENT = (
    "not a record yet",
    "could not be read",
    "had read no record",
    "before the task had a row",
    "no task has reported it",
)
CONF = {
    "spark_sql_ansi_enabled": "true",
    "spark_sql_shuffle_partitions": "3",
    "spark_sql_files_openCostInBytes": "10000000",  # a partition for each file
    "spark_sql_files_maxPartitionBytes": "10000000",
}


@dataclass(frozen=True)
class Ran:
    application: Application | None
    failures: Failures | None
    numbers: Mapping[str, range]  # the nodes that each query has made
    errors: Mapping[str, str]  # what the program has seen
    files: Sequence[str]  # beside those of the job, at its end

    def of(self, name: str) -> list[Failure]:
        assert self.failures is not None
        return [
            failure
            for failure in self.failures.failures
            if failure.node_id is not None and int(failure.node_id.rpartition("#")[2]) in self.numbers[name]
        ]


def ran(
    kafka: Any, folder: Path, queries: Mapping[str, Failing], *, lineage: bool = True, **conf: str
) -> Ran:
    """Each query in one application, and one that is not followed; all fail."""
    folder.mkdir(exist_ok=True)
    write_inputs(folder)
    numbers: dict[str, range] = {}
    errors: dict[str, str] = {}
    files: list[str] = []

    def next_number() -> int:
        from spark_agent import agent

        active = agent.active()
        return 0 if active is None else active.session.scope.next_number()

    def job(context: SparkContext) -> None:
        spark = SparkSession.builder.getOrCreate()
        for name, query in queries.items():
            before = next_number()
            for key, value in query.conf.items():
                spark.conf.set(key, value)
            try:
                query.run(Inputs(spark, folder))
            except Exception as error:  # noqa: BLE001 - whatever it is
                errors[name] = f"{type(error).__name__}: {error}"
            for key in query.conf:
                spark.conf.unset(key)
            with contextlib.suppress(Exception):
                spark.catalog.clearCache()
            numbers[name] = range(before, next_number())
        with contextlib.suppress(Exception):
            udf(Inputs(spark, folder), spark.sql(f"select {BAD} as n")).collect()
        files.extend(path.name for path in Path(SparkFiles.getRootDirectory()).iterdir())

    _, application = run_application(
        kafka.bootstrap_servers,
        folder / "store",
        job,
        master=f"local[2,{ATTEMPTS}]",
        lineage=lineage,
        **{**CONF, **conf},
    )
    failures = None
    if application is not None:
        with pytest.MonkeyPatch.context() as patch:
            for module in (failure_bounds, failure_sources):
                patch.setattr(module, "MOST_ROWS", LISTED)
            failures = application.questions.failures(application.application_id)
    return Ran(application, failures, numbers, errors, files)


@pytest.fixture(scope="module")
def cases(request: pytest.FixtureRequest, kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return ran(kafka, tmp_path_factory.mktemp("failures"), selected(request, CASES))


def numbers_of(failure: Failure) -> set[int]:
    """The n of each input row."""
    return {n_of(row.path, row.row) for row in failure.sources}


def n_of(path: str, row: int) -> int:
    part = Path(path).stem.rpartition("-")[2]
    return row + (int(part) * ROWS // FILES if part.isdecimal() else 0)


@pytest.mark.parametrize("name", sampled(CASES, 5))
def test_what_is_known_of_the_planted_row(name: str, cases: Ran) -> None:
    case = CASES[name]
    assert name in cases.errors
    failures = cases.of(name)
    # A cache that one attempt fills is read by the next one, which fails otherwise.
    assert len(failures) == 1 or (failures and name == "cached"), failures
    failure = failures[0]
    assert not failure.recovered
    assert case.exact in (None, failure.exact), failure.reason
    assert case.error in ("", failure.error)
    assert bool(failure.reason) is not failure.exact
    check_rows(failure)
    if case.is_known:
        assert failure.attempts == ATTEMPTS or name == "cached"
        assert BAD in numbers_of(failure)
        assert all(row.text for row in failure.sources)


def check_rows(failure: Failure) -> None:
    rows = numbers_of(failure)
    if failure.exact:
        assert rows in ({BAD}, set()), failure
        assert failure.sources_total == 1
    elif failure.sources_total:
        assert BAD in rows, failure
    else:
        assert any(reason in failure.reason for reason in INHERENT), failure


def test_a_division_names_its_operator_and_line(cases: Ran) -> None:
    (failure,) = cases.of("division")
    assert failure.message.startswith("[DIVIDE_BY_ZERO]")
    assert failure.record is not None
    assert cases.application is not None
    trace = cases.application.trace(direction="backward", failure=failure.failure)
    rows = [record.source for node in trace.nodes if node.kind == "source" for record in node.records]
    assert [n_of(row.path, row.row) for row in rows if row] == [BAD]


def test_a_batch_of_python_is_smaller_than_what_was_read(cases: Ran) -> None:
    (failure,) = cases.of("udf")
    assert failure.name == "BatchEvalPython"
    assert "failing_queries.py" in str(failure.frame)
    assert failure.sources_total <= ROWS // FILES


def test_functions_that_fail_leave_no_file_beside_those_of_the_job(cases: Ran) -> None:
    assert [name for name in cases.files if name.startswith(FILE_PREFIX)] == []


def test_a_trace_of_a_bound_is_refused_in_words(cases: Ran) -> None:
    (failure,) = cases.of("pandas_udf")
    assert cases.application is not None
    with pytest.raises(NotFoundError, match="which of several records"):
        cases.application.questions.trace(
            cases.application.application_id, TraceQuery(direction="backward", failure=failure.failure)
        )


@pytest.mark.thorough
def test_programs_see_the_same_errors_as_without_lineage(cases: Ran, kafka: Any, tmp_path: Path) -> None:
    plain = ran(kafka, tmp_path / "plain", {name: CASES[name] for name in cases.numbers}, lineage=False)
    assert {name: first_lines(error) for name, error in plain.errors.items()} == {
        name: first_lines(error) for name, error in cases.errors.items()
    }


def first_lines(error: str) -> list[str]:
    """Without the frames of Spark: with lineage there are other lines of generated code.

    And without what differs from run to run: folders, numbers of columns and tasks.
    """
    lines = re.sub(r"/\S*/|#\d+|o\d+\.|[Tt]ask \d+|stage \d+|TID \d+", "", error).splitlines()
    return [line for line in lines[:3] if "job aborted" not in line.lower()][:2]


def random_queries(seeds: Iterable[int]) -> dict[str, Failing]:
    def query(seed: int) -> Callable[[Inputs], Any]:
        return lambda inputs: random_query(inputs, seed)

    return {f"query {seed}": Failing(query(seed), None) for seed in seeds}


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(1, 181, 60))
def test_random_queries(first: int, kafka: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    queries = random_queries(range(first, first + 60))
    many = ran(kafka, tmp_path / "data", queries)
    counts: Counter[str] = Counter()
    unsaid: dict[str, str] = {}
    for name in queries:
        failures = many.of(name)
        for failure in failures:
            check_rows(failure)
        if name not in many.errors:
            counts["ended well"] += 1
        elif not failures:
            unsaid[name] = many.errors[name][:300]
        elif any(failure.exact for failure in failures):
            counts["exact"] += 1
        else:
            counts["bound" if failures[0].sources else "no rows, with the reason"] += 1
    with capsys.disabled():
        print(f"\nrandom queries from {first}: {dict(counts)}")
    assert unsaid == {}
    assert counts["exact"] >= 5
    assert counts["bound"] >= 5

"""Failures on a cluster: culprits are named as on one machine, and who was killed is bounded by its input."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark import SparkContext, TaskContext, cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lineage_service.lineage import Failure, Failures
from tests.support.spark import clusters
from tests.support.spark.application import run_application
from tests.support.spark.clusters import CLUSTER, kill_executor

# A cluster is up to five JVMs beside the driver's, and a dead executor is waited for.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(2700)]

# The executors of a cluster cannot import the tests.
for module in (sys.modules[__name__], clusters):
    cloudpickle.register_pickle_by_value(module)

ROWS, BAD, ATTEMPTS = 60, 47, 2


class PlantedError(ValueError):
    pass


def raises(number: int) -> int:
    if number == BAD:
        raise PlantedError(f"planted {number}")
    return number


def raises_once(number: int) -> int:
    return raises(number) if TaskContext.get().attemptNumber() == 0 else number


def is_killed(number: int) -> int:
    """With the worker that has it, and not the executor."""
    if number == BAD:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def kills_executor(number: int) -> int:
    if number == BAD:
        kill_executor()
    return number


def numbers(context: Any, path: Path) -> Any:
    return context.textFile(str(path), 3).map(int)


def frame(path: Path) -> Any:
    return SparkSession.builder.getOrCreate().read.schema("n int").csv(str(path))


def with_udf(path: Path, function: Callable[[int], int]) -> Any:
    # Within a lambda: PySpark would look at its annotations.
    return frame(path).withColumn("q", F.udf(lambda n: function(n), "int")("n"))


JOBS: dict[str, Callable[[Any, Path], Any]] = {
    "raises": lambda context, path: numbers(context, path).map(raises).count(),
    "raises behind a shuffle": lambda context, path: (
        numbers(context, path).repartition(3).map(raises).count()
    ),
    "raises once": lambda context, path: numbers(context, path).map(raises_once).count(),
    "killed": lambda context, path: numbers(context, path).map(is_killed).count(),
    "killed behind a shuffle": lambda context, path: (
        numbers(context, path).repartition(3).map(is_killed).count()
    ),
    "division": lambda _, path: frame(path).selectExpr(f"100 div (n - {BAD})").collect(),
    "udf": lambda _, path: with_udf(path, raises).collect(),
    "killed in a udf": lambda _, path: with_udf(path, is_killed).collect(),
    "executor": lambda context, path: numbers(context, path).map(kills_executor).count(),
}


@pytest.fixture(scope="module")
def failures(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Failure]]:
    folder = tmp_path_factory.mktemp("cluster")
    path = folder / "in.txt"
    path.write_text("".join(f"{number}\n" for number in range(ROWS)))
    made: dict[str, range] = {}

    def job(context: SparkContext) -> None:
        from spark_agent import agent

        active = agent.active()
        assert active is not None
        for name, run in JOBS.items():
            before = active.session.scope.next_number()
            with contextlib.suppress(Exception):
                run(context, path)
            made[name] = range(before, active.session.scope.next_number())

    conf: dict[str, Any] = {
        **CLUSTER,
        "spark_task_maxFailures": str(ATTEMPTS),
        "spark_sql_ansi_enabled": "true",
    }
    _, application = run_application(kafka.bootstrap_servers, folder / "store", job, **conf)
    assert application is not None
    answer: Failures = application.questions.failures(application.application_id)
    return {name: list(those_of(answer, numbers_made)) for name, numbers_made in made.items()}


def those_of(answer: Failures, made: range) -> Iterable[Failure]:
    for failure in answer.failures:
        if failure.node_id is not None and int(failure.node_id.rpartition("#")[2]) in made:
            yield failure


def rows_of(failure: Failure) -> list[int]:
    return [row.row for row in failure.sources]


#: Only then workers say on which row a function of a query has failed.
HAS_CALLS = tuple(int(part) for part in pyspark.__version__.split(".")[:2]) >= (4, 3)


@pytest.mark.parametrize(
    "name", ["raises", "raises behind a shuffle", "division", *(["udf"] if HAS_CALLS else [])]
)
def test_the_culprit_is_exact_in_every_attempt(name: str, failures: dict[str, list[Failure]]) -> None:
    (failure,) = failures[name]
    assert (rows_of(failure), failure.exact, failure.reason) == ([BAD], True, "")
    assert (failure.attempts, failure.recovered) == (ATTEMPTS, False)


def test_a_task_that_is_tried_again_recovers(failures: dict[str, list[Failure]]) -> None:
    (failure,) = failures["raises once"]
    assert (rows_of(failure), failure.exact, failure.attempts, failure.recovered) == ([BAD], True, 1, True)


@pytest.mark.parametrize("name", ["killed in a udf", *([] if HAS_CALLS else ["udf"])])
def test_a_batch_of_python_is_a_bound(name: str, failures: dict[str, list[Failure]]) -> None:
    (failure,) = failures[name]
    assert not failure.exact
    assert BAD in rows_of(failure)
    assert "batches" in failure.reason
    assert failure.attempts == ATTEMPTS


@pytest.mark.parametrize("name", ["killed", "executor"])
def test_who_was_killed_is_bounded_by_the_rows_of_its_partition(
    name: str, failures: dict[str, list[Failure]]
) -> None:
    (failure,) = failures[name]
    assert (failure.exact, failure.record, failure.attempts) == (False, None, 0)
    assert failure.stage is not None
    assert BAD in rows_of(failure)
    assert failure.sources_total < ROWS
    assert "any row of its partition" in failure.reason


def test_behind_a_shuffle_who_was_killed_is_bounded_by_all_rows(failures: dict[str, list[Failure]]) -> None:
    (failure,) = failures["killed behind a shuffle"]
    assert (failure.sources_total, failure.exact) == (ROWS, False)
    assert BAD in rows_of(failure)
    assert failure.stage is not None
    assert failure.partition is not None

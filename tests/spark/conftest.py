from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext

from tests.support.spark.application import Application, run_application
from tests.support.spark.dataframe_oracle import Ran, run_cases
from tests.support.spark.quick_spark import make_spark_home, stop_without_waiting

# Executors with and without lineage run this Python, not whichever `python3` comes first.
os.environ["PYSPARK_PYTHON"] = sys.executable


@pytest.fixture(scope="session", autouse=True)
def _jvm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Start the JVM without a conf. Started by a SparkContext, it would give that one's to all later ones."""
    home = tmp_path_factory.mktemp("spark-home")
    make_spark_home(home)
    stop_without_waiting()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_HOME", str(home))
        SparkContext._ensure_initialized()


@pytest.fixture
def run(kafka: Any, tmp_path: Path) -> Callable[..., tuple[Any, Application]]:
    """run(job, **conf) -> (result of the job, its lineage)."""

    def run(job: Callable[..., Any], **conf: Any) -> tuple[Any, Application]:
        result, application = run_application(kafka.bootstrap_servers, tmp_path / "store", job, **conf)
        assert application is not None
        return result, application

    return run


@pytest.fixture
def run_plain(kafka: Any, tmp_path: Path) -> Callable[..., Any]:
    """run_plain(job, **conf) -> result of the job with lineage off."""

    def run(job: Callable[..., Any], **conf: Any) -> Any:
        return run_application(kafka.bootstrap_servers, tmp_path / "store", job, lineage=False, **conf)[0]

    return run


@pytest.fixture(scope="module")
def plain(request: pytest.FixtureRequest, kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The cases PLAIN of a module, in one application without lineage."""
    folder = tmp_path_factory.mktemp("plain")
    return run_cases(kafka.bootstrap_servers, folder, request.module.PLAIN, lineage=False)


@pytest.fixture(scope="module")
def traced(
    request: pytest.FixtureRequest, kafka: Any, jar: Path, tmp_path_factory: pytest.TempPathFactory
) -> Ran:
    """The CASES of a module, in one application with lineage."""
    folder = tmp_path_factory.mktemp("traced")
    return run_cases(kafka.bootstrap_servers, folder, request.module.CASES, lineage=True)

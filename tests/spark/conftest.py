from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext

from scripts import brief_jvm
from tests.support.lanes import selected
from tests.support.spark.application import Application, run_application
from tests.support.spark.dataframe_oracle import Ran, run_cases
from tests.support.spark.quick_spark import stop_without_waiting
from tests.support.spark.sessions import Servers

# Executors with and without lineage run this Python, not whichever `python3` comes first.
os.environ["PYSPARK_PYTHON"] = sys.executable


@pytest.fixture(scope="session", autouse=True)
def _jvm() -> None:
    """Start the JVM without a conf. Started by a SparkContext, it would give that one's to all later ones."""
    brief_jvm.make_home()
    stop_without_waiting()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_HOME", str(brief_jvm.HOME))
        SparkContext._ensure_initialized()


@pytest.fixture(scope="module", autouse=True)
def _spark_home(_jvm: None) -> Iterator[None]:
    """Jobs in processes of their own start Spark quickly, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_HOME", str(brief_jvm.HOME))
        yield


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
    return run_cases(kafka.bootstrap_servers, folder, selected(request, request.module.PLAIN), lineage=False)


@pytest.fixture(scope="module")
def traced(
    request: pytest.FixtureRequest, kafka: Any, jar: Path, tmp_path_factory: pytest.TempPathFactory
) -> Ran:
    """The CASES of a module, in one application with lineage."""
    folder = tmp_path_factory.mktemp("traced")
    return run_cases(kafka.bootstrap_servers, folder, selected(request, request.module.CASES), lineage=True)


@pytest.fixture(scope="module")
def servers(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    home, prefix = tmp_path_factory.mktemp("home"), uuid.uuid4().hex[:10]
    topics = {"node": f"{prefix}-node", "flow": f"{prefix}-flow"}
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LINEAGE_")}
    environment = clean | {
        "LINEAGE_HOME": str(home),
        "LINEAGE_KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        "LINEAGE_NODE_TOPIC": topics["node"],
        "LINEAGE_FLOW_TOPIC": topics["flow"],
        "LINEAGE_DEAD_LETTER_TOPIC": f"{prefix}-dead",
        "LINEAGE_CONSUMER_GROUP": prefix,
        "LINEAGE_BATCH_MAX_SECONDS": "0.2",
        "LINEAGE_API_PORT": "0",
        "LINEAGE_METRICS": "false",
    }
    conf = {
        "spark.lineage.enabled": "true",
        "spark.lineage.kafka.bootstrap.servers": kafka.bootstrap_servers,
        "spark.lineage.topic.node": topics["node"],
        "spark.lineage.topic.flow": topics["flow"],
        "spark.lineage.delivery.timeout": "20",
        "spark.ui.enabled": "false",
    }
    with ExitStack() as cleanup:
        found = Servers(home, environment, conf)
        cleanup.callback(lambda: [(each.terminate(), each.wait()) for each in found.started])
        found.start("consume")
        found.start("serve")
        conf["spark.lineage.api"] = found.address()
        yield found

"""Others who listen to Spark see the plans that they see without lineage, and say the same of them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest
from py4j.java_gateway import JavaObject
from pyspark import SparkContext
from pyspark.java_gateway import ensure_callback_server_started

from lineage_service.devstack.errors import DownloadError
from tests.support.spark.application import run_application
from tests.support.spark.observed_queries import EVENTS, QUERIES, session_of
from tests.support.spark.openlineage import conf_of, listener_jar, normalised
from tests.support.spark.shop import make_shop

DEADLINE_S = 800
#: A semi-join with more than equal keys. OpenLineage says RUNNING once for each job.
WITH_MORE_JOBS = ("EXISTS with more than equal keys",)
#: Those that are looked at in each run of the tests.
QUICK = (
    "a filter",
    "lines of CSV",
    "an inner join",
    "EXISTS with more than equal keys",
    "a scalar subquery",
    "groups",
    "a window",
    "a union",
    "explode",
    "a named query that is read twice",
    "partitioned output",
    "a cache",
    "a Python function",
    "a checkpoint",
    "collect",
)
#: OpenLineage's listener says nothing of a query with an adaptive plan that writes nothing.
UNSAID = ("collect", "count")
_NUMBERS = re.compile(r"#\d+L?|@[0-9a-f]+|\d+ms")

Operator = tuple[str, str, tuple[str, ...], str]
"""(name, text, the columns that it reads, what Spark expects of its size)."""


class Listener:
    """A QueryExecutionListener, as data catalogs have one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.plans: list[list[Operator]] = []

    def onSuccess(self, name: str, execution: JavaObject, nanoseconds: int) -> None:
        self.plans.append([self._operator(plan) for plan in operators(execution.optimizedPlan())])

    def onFailure(self, name: str, execution: JavaObject, error: JavaObject) -> None:
        self.plans.append([("failed", str(error), (), "")])

    def _operator(self, plan: JavaObject) -> Operator:
        text = _NUMBERS.sub("", plan.simpleString(1000)).replace(str(self._folder), "")
        columns, read = plan.references().iterator(), []
        while columns.hasNext():
            read.append(str(columns.next().name()))
        return plan.nodeName(), text, tuple(sorted(read)), str(plan.stats().simpleString())

    class Java:
        implements = ("org.apache.spark.sql.util.QueryExecutionListener",)


def operators(plan: JavaObject) -> Iterator[JavaObject]:
    yield plan
    for parts in (plan.children(), plan.subqueries()):
        for at in range(parts.size()):
            yield from operators(parts.apply(at))


Seen = Mapping[str, list[list[Operator]]]


def plans_seen(kafka: Any, folder: Path, *, lineage: bool) -> Seen:
    make_shop(folder / "shop")

    def job(context: SparkContext) -> Seen:
        spark, listener, seen = session_of(context, str(folder / "shop")), Listener(folder), {}
        ensure_callback_server_started(context._gateway)
        bus = context._jsc.sc().listenerBus()
        spark._jsparkSession.listenerManager().register(listener)
        for at, name in enumerate(QUICK):
            QUERIES[name](spark, str(folder / f"out-{at}"))
            bus.waitUntilEmpty()
            seen[name], listener.plans = listener.plans, []
        return seen

    result, application = run_application(kafka.bootstrap_servers, folder / "store", job, lineage=lineage)
    if application is not None:
        assert application.questions.application(application.application_id).counters["queries_failed"] == 0
    return result  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def seen_without(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return plans_seen(kafka, tmp_path_factory.mktemp("plain"), lineage=False)


@pytest.fixture(scope="module")
def seen_with(kafka: Any, jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return plans_seen(kafka, tmp_path_factory.mktemp("captured"), lineage=True)


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.thorough
def test_a_listener_reads_the_plan_that_it_reads_without_lineage(
    name: str, seen_without: Seen, seen_with: Seen
) -> None:
    assert seen_without[name]
    assert seen_with[name] == seen_without[name]


# -- OpenLineage -----------------------------------------------------------------------------------------

Events = Mapping[str, list[Any]]


def events_of(kafka: Any, folder: Path, openlineage: Path, *, lineage: bool) -> Events:
    """By query: what OpenLineage's listener wrote."""
    make_shop(folder / "shop")
    output = folder / "rows"
    output.mkdir()
    prefix = uuid.uuid4().hex[:10]
    conf = {
        "spark.master": "local[2]",
        "spark.app.name": "observed",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.lineage.enabled": str(lineage).lower(),
        "spark.lineage.kafka.bootstrap.servers": kafka.bootstrap_servers,
        "spark.lineage.topic.node": f"{prefix}-node",
        "spark.lineage.topic.flow": f"{prefix}-flow",
        **conf_of(openlineage, output / EVENTS),
    }
    command = [sys.executable, "-m", "tests.support.spark.observed_queries"]
    done = subprocess.run(
        [*command, str(folder / "shop"), str(output), json.dumps(conf)],
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert ("lineage: complete for" in done.stderr) == lineage, done.stderr[-3000:]
    lines = (output / EVENTS).read_text().splitlines()
    ends = json.loads(done.stdout.splitlines()[-1])
    slices = zip(QUERIES, ends, ends[1:], strict=False)
    return {name: normalised(lines[first:end], folder) for name, first, end in slices}


@pytest.fixture(scope="module")
def openlineage(jar_folder: Path, cannot_have: Callable[[str], NoReturn]) -> Path:
    try:
        return listener_jar(jar_folder)
    except DownloadError as error:
        cannot_have(f"no listener of OpenLineage: {error}")


@pytest.fixture(scope="module")
def events_without(kafka: Any, openlineage: Path, tmp_path_factory: pytest.TempPathFactory) -> Events:
    return events_of(kafka, tmp_path_factory.mktemp("plain"), openlineage, lineage=False)


@pytest.fixture(scope="module")
def events_with(kafka: Any, jar: Path, openlineage: Path, tmp_path_factory: pytest.TempPathFactory) -> Events:
    return events_of(kafka, tmp_path_factory.mktemp("captured"), openlineage, lineage=True)


def different(events: list[Any]) -> list[str]:
    """In their order, each of those that are equal once."""
    return list(dict.fromkeys(json.dumps(event, sort_keys=True) for event in events))


@pytest.mark.thorough
@pytest.mark.timeout(2000)
@pytest.mark.parametrize("name", QUERIES)
def test_openlineage_says_what_it_says_without_lineage(
    name: str, events_without: Events, events_with: Events
) -> None:
    before, after = events_without[name], events_with[name]
    assert bool(before) == (name not in UNSAID)
    assert len(after) >= len(before) if name in WITH_MORE_JOBS else len(after) == len(before)
    assert different(after) == different(before)

"""A query beside a real broker that hangs, is slow or refuses: its rows, its waits, what is told."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from pyspark.sql import SparkSession

from lineage_service.devstack.errors import DownloadError, JavaError
from perf.delivery.brokers import NO_CREATE, NO_WRITE, Broker
from tests.support.spark.application import messages_of
from tests.support.spark.taps import PARTITIONS, TAP, Taps

WAIT_BUDGET_S = 5.0
#: What several waits within the patience may cost on a machine that many tests share.
MOST_S = 60.0


pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def broker(
    tmp_path_factory: pytest.TempPathFactory, jar_folder: Path, cannot_have: Callable[[str], NoReturn]
) -> Iterator[Broker]:
    try:
        with Broker(tmp_path_factory.mktemp("broker"), jar_folder, bytes_per_second=100) as broker:
            yield broker
    except (DownloadError, JavaError) as error:
        cannot_have(f"no kafka: {error}")


@pytest.fixture(scope="module")
def spark(jar: Path) -> Iterator[SparkSession]:
    builder = SparkSession.builder.master("local[2]").appName("taps").config("spark.ui.enabled", "false")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def queried(taps: Taps, rows: int = 200_000) -> list[dict[str, Any]]:
    """The manifests of the tap in a query whose rows are checked, as is how long it takes."""
    read = taps.with_ids(taps.spark.range(0, rows, 1, 4), 1, "id1").withColumnRenamed("id", "k")
    keyed = read.selectExpr("*", "xxhash64(k) & 9223372036854775807 as key")
    begin = time.monotonic()
    assert taps.tapped(keyed, {"id1": 1}, "key").groupBy().sum("k").collect()[0][0] == rows * (rows - 1) // 2
    assert time.monotonic() - begin < MOST_S
    runs = [manifest for manifest in taps.manifests() if manifest["input"] == TAP]
    assert sum(run["inputs"] for run in runs) == rows
    return runs


@pytest.mark.parametrize(
    ("topic", "config", "problem"),
    [
        (NO_WRITE, {}, r"write to topic no-write-.+: grant its user Write"),
        ("small-", {"max.message.bytes": "100"}, r"refuses messages as too large: set the topic's max\.mess"),
        (NO_CREATE, None, r"topic no-create-.+(have to be created|grant its user)"),
    ],
)
def test_a_broker_that_refuses_is_named_with_what_to_do(
    topic: str, config: dict[str, str] | None, problem: str, spark: SparkSession, broker: Broker
) -> None:
    name = f"{topic}{uuid.uuid4().hex[:8]}"
    if config is not None:
        broker.create_topic(name, PARTITIONS, config)
    patience_s = (
        WAIT_BUDGET_S + len(topic) / 10
    )  # another one for each, and so a sender that has not given up
    runs = queried(Taps(spark, broker.servers, patience_s=patience_s, topic=name))
    for run in runs:
        assert run["dropped"] == run["blocks"] > 0
        assert broker.servers in run["problem"]
    assert any(re.search(problem, run["problem"]) for run in runs), {run["problem"] for run in runs}


def test_a_loss_fails_the_query_where_the_user_asks_for_that(spark: SparkSession, broker: Broker) -> None:
    name = f"{NO_WRITE}{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, PARTITIONS, {})
    taps = Taps(spark, broker.servers, patience_s=WAIT_BUDGET_S + 3, topic=name, on_error="fail")
    with pytest.raises(
        Exception, match=r"partition \d is incomplete, and spark\.lineage\.onError=fail: .+ Write"
    ):
        queried(taps)
    assert not [manifest for manifest in taps.manifests() if manifest["input"] == TAP and manifest["dropped"]]


def test_what_a_broker_that_hangs_has_not_confirmed_is_counted_and_arrives_later(
    spark: SparkSession, broker: Broker
) -> None:
    taps = Taps(spark, broker.servers, patience_s=10.0)  # a machine that runs many tests is a slow broker
    broker.create_topic(taps.topic, PARTITIONS)
    before = queried(taps)
    assert sum(run["dropped"] for run in before) == 0
    broker.suspend()
    try:
        runs = queried(taps)
    finally:
        broker.revive()
    for run in runs:
        assert run["dropped"] == run["blocks"] >= run["unconfirmed"]
        assert "does not take them" in run["problem"]
    assert sum(run["unconfirmed"] for run in runs) > 0
    assert max(run["waited_ms"] for run in runs) < 11_000
    deadline = time.monotonic() + 240
    expected = sum(run["blocks"] for run in before) + sum(run["unconfirmed"] for run in runs)
    while len(messages_of(broker.servers, taps.topic)) < expected:
        assert time.monotonic() < deadline


def test_a_broker_that_is_slow_costs_a_bounded_time(spark: SparkSession, broker: Broker) -> None:
    taps = Taps(spark, broker.slow_servers, patience_s=WAIT_BUDGET_S)
    broker.create_topic(taps.topic, PARTITIONS)
    runs = queried(taps)
    for run in runs:
        assert run["dropped"] == run["blocks"]
        assert "does not take them" in run["problem"] or "more slowly" in run["problem"]

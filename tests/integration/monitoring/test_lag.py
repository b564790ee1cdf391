"""The lag of a real group, beside a real `lineage consume` that is stopped while messages wait."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from lineage_service.kafka.errors import BrokerUnavailableError
from lineage_service.kafka.group import KafkaGroup
from lineage_service.lineage import GroupLag
from lineage_service.monitoring.lag import LagWatch, open_lag
from lineage_service.monitoring.metrics import new_registry
from lineage_service.monitoring.metrics_server import CannotListenError, metrics_server
from lineage_service.settings import Settings
from perf.delivery.brokers import closed_port
from spark_agent import contract
from tests.support.consumers import (
    Bench,
    bench_of,
    manifest,
    metrics_url,
    output_of,
    serving,
    settings_of,
    some_blocks,
    wait_until,
)
from tests.support.group_suite import GroupSuite
from tests.support.lineage_messages import APP, event

Labels = tuple[tuple[str, str], ...]


@pytest.fixture
def bench(kafka: Any, tmp_path: Path, topic: str) -> Iterator[Bench]:
    yield from bench_of(kafka, tmp_path, topic)


def waiting(lag: GroupLag) -> dict[tuple[str, int], int]:
    return {
        (partition.topic, partition.partition): partition.messages
        for partition in lag.partitions
        if partition.messages
    }


def scraped(url: str) -> dict[str, dict[Labels, float]]:
    """Sample name -> labels -> value, as Prometheus' own parser reads it."""
    with urllib.request.urlopen(url, timeout=60) as answer:
        text = answer.read().decode()
    found: dict[str, dict[Labels, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


@pytest.mark.thorough
def test_messages_that_wait_for_a_stopped_consumer_are_counted_and_timed(bench: Bench) -> None:
    watch = open_lag(settings_of(bench))
    process = bench.consume(metrics_port=0)
    url = metrics_url(process)
    bench.send_blocks(*some_blocks(1, 5), b"poison")
    bench.send_events(event(contract.APPLICATION_STARTED, name="job"), manifest(1, 5), manifest(2, 7))
    wait_until(lambda: settled(watch) and watch.group().dead_letters == 1, process)
    done = watch.group()
    assert (done.members, done.seconds, done.drain_seconds, done.dead_letters) == (1, 0.0, 0.0, 1)
    assert process.poll() is None

    process.send_signal(signal.SIGSTOP)
    more = some_blocks(2, 7)
    before = time.time()
    bench.send_blocks(*more[:4])
    bench.send_blocks(*more[4:], partition=2)
    after = time.time()
    watch = open_lag(settings_of(bench))
    assert watch.group().rate is None
    looked = time.time()  # a look takes seconds on a busy machine, and rates are of two looks
    wait_until(lambda: time.time() > looked + 2.0)
    asked = time.time()
    lag = watch.group()
    assert waiting(lag) == {(bench.flow_topic, 0): 4, (bench.flow_topic, 2): 3}
    assert lag.seconds is not None
    assert asked - after - 0.1 <= lag.seconds <= time.time() - before + 0.1
    assert (lag.rate, lag.incoming_rate, lag.drain_seconds) == (0.0, 0.0, None)
    [application] = watch.applications().applications
    assert (application.application_id, application.name, application.messages) == (APP, "job", 7)

    with serving(bench) as address:
        with urllib.request.urlopen(f"{address}/api/lag", timeout=60) as answer:
            body = json.load(answer)
        assert (body["group"]["messages"], body["group"]["name"]) == (7, bench.group)
        assert [application["missing_blocks"] for application in body["applications"]] == [7]
        served = scraped(f"{address}/metrics")
        place = (("consumergroup", bench.group), ("partition", "2"), ("topic", bench.flow_topic))
        assert served["kafka_consumergroup_lag"][place] == 3
        assert served["lineage_consumergroup_lag_seconds"][place] >= asked - after - 0.1
        assert served["lineage_blocks_missing"][()] == 7

    process.send_signal(signal.SIGCONT)
    wait_until(lambda: settled(watch), process)
    assert (watch.group().rate or 0.0) > 0
    found = scraped(url)
    # Stopped for longer than its session it reads again what it had not stored, so only blocks are exact.
    assert found["lineage_consumer_messages_total"][()] >= 16
    assert found["lineage_consumer_blocks_total"] == {(): 12}
    assert found["lineage_consumer_dead_letters_total"] == {(): 1}
    assert found["lineage_consumer_waiting"] == {(): 0}
    assert found["lineage_consumer_store_seconds_count"][("store", "flow_store"),] >= 4
    assert found["lineage_consumer_batch_messages_sum"][("topic", bench.flow_topic),] >= 13
    process.send_signal(signal.SIGTERM)
    output_of(process, 0)
    wait_until(lambda: watch.group().members == 0)  # the looks themselves never joined


def settled(watch: LagWatch) -> bool:
    """Nothing waits, and that of a look of its own."""
    time.sleep(0.5)
    return watch.group().messages == 0


def test_status_says_what_waits_and_that_nobody_ever_consumed(bench: Bench) -> None:
    bench.send_blocks(*some_blocks(1, 3))
    home = bench.folder / "home"
    chosen = settings_of(bench).model_dump(exclude_defaults=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LINEAGE_")}
    environment |= {f"LINEAGE_{name.upper()}": str(value) for name, value in chosen.items()}
    status = subprocess.run(
        [sys.executable, "-m", "lineage_service.cli.main", "status"],
        env={**environment, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert status.returncode == 3  # as before: no server of this home is up
    assert f"Consumer group {bench.group}: nobody consumes now." in status.stdout
    assert "It never consumed anything. 3 messages wait, the first for " in status.stdout
    assert bench.flow_topic in status.stdout
    assert not home.exists(), "a look made a home"
    assert not (bench.folder / "flows").exists(), "a look made a store"


class KafkaBench:
    def __init__(self, servers: str, topic: str, group: str) -> None:
        self._servers, self.topic, self._name = servers, topic, group
        self.group = KafkaGroup(servers, group)
        admin = AdminClient({"bootstrap.servers": servers})  # its futures end with it
        [made] = admin.create_topics([NewTopic(topic, 2)]).values()
        made.result(30)

    def put(self, partition: int, *times: int) -> None:
        producer = Producer({"bootstrap.servers": self._servers, "linger.ms": 1})
        for moment in times:
            producer.produce(self.topic, b"message", partition=partition, timestamp=moment)
        assert producer.flush(30) == 0

    def commit(self, partition: int, offset: int) -> None:
        config = {"bootstrap.servers": self._servers, "group.id": self._name, "enable.auto.commit": False}
        offsets = [TopicPartition(self.topic, partition, offset)]
        with closing(KafkaConsumer(config)) as member:

            def is_taken() -> bool:
                try:
                    member.commit(offsets=offsets, asynchronous=False)
                except KafkaException:  # a young broker's group has no coordinator for a moment
                    return False
                return True

            wait_until(is_taken)


class TestKafkaGroup(GroupSuite):
    @pytest.fixture
    def bench(self, kafka: Any, topic: str, group: str) -> KafkaBench:
        return KafkaBench(kafka.bootstrap_servers, topic, group)


def test_a_broker_that_is_not_there_is_told_within_the_time() -> None:
    with closed_port() as address:
        begun = time.monotonic()
        with pytest.raises(BrokerUnavailableError, match=address):
            KafkaGroup(address, "g").state(["flow"], 1.0)
        assert time.monotonic() - begun < 5


# -- the address of /metrics ---------------------------------------------------------------------------


def test_a_port_that_is_taken_is_left_for_the_next() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        wanted = Settings(metrics_port=taken.getsockname()[1])
        with metrics_server(wanted, new_registry()) as url, metrics_server(wanted, new_registry()) as other:
            assert "process_cpu_seconds_total" in scraped(url)
            assert int(url.split(":")[2].partition("/")[0]) > wanted.metrics_port
            assert url != other
            with pytest.raises(urllib.error.HTTPError, match="404") as missing:
                urllib.request.urlopen(url.replace("/metrics", "/other"), timeout=60)
            missing.value.close()


@pytest.mark.parametrize(
    ("host", "port", "why"),
    [
        ("127.0.0.1", 70_000, "ports go from"),
        ("203.0.113.1", 0, "annot assign"),
        ("no such host", 0, "no such host"),
    ],
)
def test_an_address_that_cannot_be_had_is_told(host: str, port: int, why: str) -> None:
    with pytest.raises(CannotListenError, match=why):
        with metrics_server(Settings(metrics_host=host, metrics_port=port), CollectorRegistry()):
            pass


def test_metrics_can_be_switched_off(bench: Bench) -> None:
    bench.send_events(manifest(1, 0), event(contract.APPLICATION_ENDED))
    out = output_of(bench.consume("--until-complete", APP, "--metrics", "off"), 0)
    assert "metrics are at" not in out

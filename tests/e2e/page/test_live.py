"""A real browser on `lineage serve` beside a real Kafka: what waits is seen, and seen to be consumed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright")

from confluent_kafka import Producer
from playwright.sync_api import expect

from spark_agent import contract
from tests.support.lineage_messages import event

APP = "seen-to-arrive"
_DEADLINE_S = 240
_CONSUMED_MS = 60_000


class Service:
    """`lineage` in a home of its own, on topics and with a group of its own."""

    def __init__(self, home: Path, kafka: Any, name: str) -> None:
        self.home, self.servers, self.topic = home, kafka.bootstrap_servers, f"{name}-node"
        topics = {"node": self.topic, "flow": f"{name}-flow", "dead_letter": f"{name}-dead"}
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("LINEAGE_")},
            "LINEAGE_HOME": str(home),
            "LINEAGE_KAFKA_BOOTSTRAP_SERVERS": self.servers,
            "LINEAGE_CONSUMER_GROUP": name,
            "LINEAGE_API_PORT": "0",
            **{f"LINEAGE_{kind.upper()}_TOPIC": topic for kind, topic in topics.items()},
        }
        for topic_name in topics.values():
            kafka.create_topic(topic_name)

    def send(self, *events: bytes) -> None:
        producer = Producer({"bootstrap.servers": self.servers})
        for message in events:
            producer.produce(self.topic, message, key=APP.encode())
        assert producer.flush(30) == 0

    def run(self, *command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "lineage_service.cli.main", *command],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def address(self) -> str:
        deadline = time.monotonic() + _DEADLINE_S
        while not (self.home / "api.json").exists():
            assert time.monotonic() < deadline, "lineage serve does not say where it is"
            time.sleep(0.05)
        return str(json.loads((self.home / "api.json").read_text())["url"])


@pytest.fixture
def service(kafka: Any, topic: str, tmp_path: Path) -> Iterator[Service]:
    made = Service(tmp_path, kafka, topic)
    serving = made.run("serve")
    yield made
    serving.terminate()
    serving.wait()


@pytest.mark.thorough
def test_what_waits_is_seen_to_be_consumed_and_the_application_to_arrive(page, service):
    service.send(
        event(contract.APPLICATION_STARTED, application_id=APP, time=1, name="Seen to arrive"),
        event(
            contract.NODE_REGISTERED,
            application_id=APP,
            time=2,
            node=0,
            name="textFile",
            kind="source",
            relation=contract.SOURCE,
            exact=True,
        ),
    )
    page.goto(f"{service.address()}/#/lag")
    expect(page.locator("main")).to_contain_text("No consumer is running, and messages are waiting")
    expect(page.locator("main")).to_contain_text("2 messages are waiting")
    consuming = service.run("consume")
    try:
        expect(page.locator("main")).to_contain_text("No messages are waiting", timeout=_CONSUMED_MS)
        expect(page.locator("main")).not_to_contain_text("No consumer is running", timeout=_CONSUMED_MS)
        expect(page.get_by_role("link", name="Seen to arrive")).to_be_visible()
        page.locator("#places").get_by_role("link", name="Applications").click()
        expect(page.locator("tbody tr", has_text=APP)).to_contain_text("running")
        service.send(event(contract.APPLICATION_ENDED, application_id=APP, time=5_000))
        expect(page.locator("tbody tr", has_text=APP)).to_contain_text("ended after", timeout=_CONSUMED_MS)
    finally:
        consuming.terminate()
        consuming.wait()

"""One event is with the broker when the call returns; a broker that is away is one sentence."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from lineage_service.kafka import sent_event
from lineage_service.kafka.errors import BrokerUnavailableError
from lineage_service.settings import Settings


def test_an_event_is_in_the_topic_with_the_key_of_its_application(kafka: Any, tmp_path: Path) -> None:
    topic = f"nodes-{uuid.uuid4().hex[:12]}"
    settings = Settings(home=tmp_path, kafka_bootstrap_servers=kafka.bootstrap_servers, node_topic=topic)
    sent_event.send_event(settings, "local-1", b"{}")
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap_servers, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    try:
        consumer.subscribe([topic])
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        assert (message.key(), message.value()) == (b"local-1", b"{}")
    finally:
        consumer.close()


def test_a_broker_that_is_away_is_said_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sent_event, "TIMEOUT_S", 1.0)
    settings = Settings(home=tmp_path, kafka_bootstrap_servers="127.0.0.1:1")
    with pytest.raises(BrokerUnavailableError, match=r"no Kafka broker at 127\.0\.0\.1:1 took it"):
        sent_event.send_event(settings, "local-1", b"{}")

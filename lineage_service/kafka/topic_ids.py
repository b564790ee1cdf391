"""The broker's ids of topics: a topic that is deleted and created again has another id, and other messages.

`look_up` waits for the broker. `recreated` never waits: it sends a request now and then, and reads the answer
of the one before.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection

from lineage_service.kafka.errors import ErrorLog, is_refusal, no_broker, refusal

__all__ = ["NO_TOPIC_ID", "TopicIds"]

#: How brokers that know no ids answer (those before Kafka 2.8, and some that only speak like Kafka).
NO_TOPIC_ID = "A" * 22
_REQUEST_TIMEOUT_S = 10.0
#: How often it is asked whether the topics are still the same.
_LOOK_UP_S = 10.0


class TopicIds:
    """The ids of some topics, and whether they still have them."""

    def __init__(self, admin: Any, bootstrap_servers: str, log: ErrorLog) -> None:
        self._admin = admin
        self._servers = bootstrap_servers
        self._log = log
        self._ids: dict[str, str] = {}
        self._requests: Mapping[str, Any] = {}  # topic -> the future of its description
        self._look_up_at = 0.0

    def get(self, topic: str) -> str | None:
        """The id, NO_TOPIC_ID of a broker that knows none; None where the broker did not say."""
        return self._ids.get(topic)

    def look_up(self, topics: Iterable[str]) -> None:
        """Learn the topics' ids. Those that were learned before will do while the broker is away.

        Raises BrokerUnavailableError, BrokerRefusedError.
        """
        for topic, future in self._describe(topics).items():
            try:
                topic_id = str(future.result(2 * _REQUEST_TIMEOUT_S).topic_id)
            except KafkaException as error:
                kafka_error = error.args[0]
                if is_refusal(kafka_error):
                    raise refusal(kafka_error) from error
                if topic not in self._ids and kafka_error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise no_broker(self._servers, error) from error
                self._log.add(kafka_error)
            else:
                if topic_id != NO_TOPIC_ID or topic not in self._ids:
                    self._ids[topic] = topic_id
        self._look_up_at = time.monotonic() + _LOOK_UP_S

    def recreated(self, topics: set[str]) -> set[str]:
        """Those of the topics that have another id than they had."""
        if not self._requests:
            if topics and time.monotonic() >= self._look_up_at:
                self._requests = self._describe(topics)
            return set()
        if not all(future.done() for future in self._requests.values()):
            return set()
        answers, self._requests = self._requests, {}
        self._look_up_at = time.monotonic() + _LOOK_UP_S
        return {topic for topic in topics & answers.keys() if self._is_another(topic, answers[topic])}

    def _is_another(self, topic: str, answer: Any) -> bool:
        if answer.exception() is not None:
            return False
        return str(answer.result().topic_id) not in (NO_TOPIC_ID, self._ids.get(topic))

    def _describe(self, topics: Iterable[str]) -> Mapping[str, Any]:
        requests: Mapping[str, Any] = self._admin.describe_topics(
            TopicCollection(list(topics)), request_timeout=_REQUEST_TIMEOUT_S
        )
        return requests

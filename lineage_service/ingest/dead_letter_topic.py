"""The topic of dead letters of a broker, and a consumer group that only remembers what was sent back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from lineage_service.ingest.letters import Letter, Redelivered, letter_of
from lineage_service.kafka.client import NO_OPTIONS, SESSION, client_of
from lineage_service.kafka.dead_letters import MAX_LETTER_BYTES
from lineage_service.kafka.errors import TRANSIENT_ERRORS, BrokerUnavailableError, no_broker

__all__ = ["KafkaDeadLetterTopic"]

TIMEOUT_S = 10.0


class KafkaDeadLetterTopic:
    """The DeadLetterTopic of a broker. For one thread."""

    def __init__(
        self, bootstrap_servers: str, topic: str, group: str, *, options: Mapping[str, str] = NO_OPTIONS
    ) -> None:
        """`options` are further ones of the client: TLS, passwords. Raises BrokerUnavailableError."""
        self._topic = topic
        self._servers = bootstrap_servers
        common: dict[str, Any] = {
            **options,
            "bootstrap.servers": bootstrap_servers,
            "client.id": "lineage-dead-letters",
            "log_level": 0,
            "error_cb": lambda _error: None,
        }
        self._consumer: Any = client_of(
            Consumer,
            {**SESSION, **common}
            | {"group.id": group, "enable.auto.commit": False, "enable.partition.eof": True},
        )
        self._producer: Any = client_of(
            Producer,
            common
            | {
                "enable.idempotence": True,
                "compression.type": "zstd",
                "message.max.bytes": 2 * MAX_LETTER_BYTES,
                "message.timeout.ms": int(TIMEOUT_S * 1000),
            },
        )
        try:
            self._topics = self._consumer.list_topics(timeout=TIMEOUT_S).topics
        except KafkaException as error:
            self.close()
            raise no_broker(bootstrap_servers, error) from error

    def partitions_of(self, topics: Sequence[str]) -> dict[str, int]:
        return {
            topic: len(self._topics[topic].partitions) if topic in self._topics else 0 for topic in topics
        }

    def bounds(self) -> dict[int, tuple[int, int]]:
        return {place.partition: self._request("get_watermark_offsets", place) for place in self._places()}

    def redelivered(self) -> dict[int, Redelivered]:
        places = self._places()
        committed = self._request("committed", places) if places else []
        return {
            place.partition: Redelivered.of(place.offset, place.metadata or "")
            for place in committed
            if place.offset >= 0
        }

    def remember(self, partition: int, redelivered: Redelivered) -> None:
        offset = TopicPartition(self._topic, partition, redelivered.before, redelivered.as_text())
        self._patiently(lambda: self._consumer.commit(offsets=[offset], asynchronous=False))

    def letters(self, partition: int, first: int, end: int) -> Iterator[Letter]:
        if first >= end:
            return
        self._consumer.assign([TopicPartition(self._topic, partition, first)])
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            for message in self._consumer.consume(100, 0.1):
                error = message.error()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    return
                if error is None and message.offset() >= end:
                    return
                if error is None:
                    yield letter_of(message)
                    deadline = time.monotonic() + TIMEOUT_S
            if time.monotonic() > deadline:
                raise BrokerUnavailableError(
                    f"Kafka at {self._servers} gives no more letters of {self._topic}-{partition}, which has "
                    f"them up to offset {end - 1}"
                )

    def send(self, letters: Sequence[Letter]) -> list[str | None]:
        outcomes: list[str | None] = ["no answer in time"] * len(letters)
        for at, letter in enumerate(letters):
            try:
                self._producer.produce(
                    letter.topic,
                    letter.value,
                    letter.key,
                    letter.from_partition,
                    on_delivery=partial(_note, outcomes, at),
                )
            except (KafkaException, BufferError) as error:
                outcomes[at] = str(error)
        self._producer.flush(TIMEOUT_S)
        return outcomes

    def close(self) -> None:
        self._consumer.close()

    def _places(self) -> list[TopicPartition]:
        if self._topic not in self._topics:
            return []
        numbers = sorted(self._topics[self._topic].partitions)
        return [TopicPartition(self._topic, number) for number in numbers]

    def _request(self, method: str, place: object) -> Any:
        return self._patiently(lambda: getattr(self._consumer, method)(place, timeout=TIMEOUT_S))

    def _patiently(self, request: Callable[[], Any]) -> Any:
        """A broker that has just started, or never had a group, looks for its coordinator first."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                return request()
            except KafkaException as error:
                if error.args[0].code() not in TRANSIENT_ERRORS or time.monotonic() > deadline:
                    raise self._unavailable(error) from error
                time.sleep(0.1)

    def _unavailable(self, error: KafkaException) -> BrokerUnavailableError:
        return BrokerUnavailableError(
            f"Kafka at {self._servers} does not answer about topic {self._topic}: {error.args[0].str()}"
        )


def _note(outcomes: list[str | None], at: int, error: Any, _message: object) -> None:
    outcomes[at] = None if error is None else error.str()

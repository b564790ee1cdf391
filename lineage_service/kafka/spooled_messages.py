"""Sends messages that waited in a spool to the topics that they are for.

Promises that `send` returns only when the broker has acknowledged all of the messages, and that a topic which
is not there is made with the number of partitions that agents give it. Knows nothing of files.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaException, Producer

from lineage_service.kafka.client import NO_OPTIONS, client_of, silent_log
from lineage_service.kafka.errors import BrokerUnavailableError, no_broker, request_error
from lineage_service.kafka.topics import create_topics
from spark_agent import contract
from spark_agent.contract import kafka_config
from spark_agent.contract.spool_files import SpooledMessage

#: A broker may take so long for an answer before it counts as gone.
_ANSWER_S = 120.0
#: ... but not so long for a connection.
_CONNECT_S = 15.0
_WINDOW_BYTES = 16_000_000


class SpooledMessages:
    """The way to one cluster. Not thread-safe."""

    def __init__(self, bootstrap_servers: str, *, options: Mapping[str, str] = NO_OPTIONS) -> None:
        """`options` are further ones of the client: TLS, passwords. Raises KafkaConfigError."""
        self._servers, self._options = bootstrap_servers, options
        self._partitions: dict[str, int] = {}
        self._pending = 0
        self._error: Any = None
        self._producer = self._connected()

    def _connected(self) -> Any:
        servers, answer_ms = self._servers, int(_ANSWER_S * 1000)
        return client_of(
            Producer,
            {
                **self._options,
                "bootstrap.servers": servers,
                "compression.type": "zstd",
                "linger.ms": 5,
                "request.timeout.ms": answer_ms,
                **kafka_config.patience(_ANSWER_S),
                "message.timeout.ms": 4 * answer_ms,
            },
            logger=silent_log,
        )

    def send(self, messages: Iterable[SpooledMessage]) -> None:
        """Send all of them. Raises LineageError when one was not acknowledged: then send all again, later."""
        self._error, self._pending, under_way = None, 0, 0
        try:
            for message in messages:
                self._queue(message)
                under_way += len(message.value)
                if under_way >= _WINDOW_BYTES:
                    self._wait()
                    under_way = 0
            self._wait()
        except KafkaException as error:
            self._give_up()
            raise request_error(self._servers, error) from error
        except BaseException:
            self._give_up()
            raise

    def _give_up(self) -> None:
        """Let go of what is under way. What is purged may be purged a moment later, so with the client."""
        self._producer.purge()
        self._producer.poll(0)
        self._producer = self._connected()

    def _queue(self, message: SpooledMessage) -> None:
        place = {}
        if message.partition >= 0:
            place = {"partition": message.partition % self._partitions_of(message)}
        else:
            self._partitions_of(message)
        while True:
            try:
                self._producer.produce(
                    message.topic, value=message.value, key=message.key, on_delivery=self._report, **place
                )
                self._pending += 1
                return
            except BufferError:
                self._producer.poll(0.1)

    def _report(self, error: Any, _message: object) -> None:
        self._pending -= 1
        self._error = self._error or error

    def _wait(self) -> None:
        until = time.monotonic() + 4 * _ANSWER_S
        while self._pending and self._error is None and time.monotonic() < until:
            self._producer.poll(0.5)
        if self._error is not None:
            raise KafkaException(self._error)
        if self._pending:
            raise BrokerUnavailableError(f"the broker at {self._servers} does not answer; try again later")

    def _partitions_of(self, message: SpooledMessage) -> int:
        topic = message.topic
        if topic not in self._partitions:
            listed = self._listed(topic)
            if not listed:
                count = contract.NODE_PARTITIONS if message.partition < 0 else contract.FLOW_PARTITIONS
                create_topics(
                    self._servers,
                    {topic: count},
                    options={**self._options, **kafka_config.patience(_ANSWER_S)},
                    timeout_s=4 * _ANSWER_S,
                )
                listed = count
            self._partitions[topic] = listed
        return self._partitions[topic]

    def _check_that_something_listens(self) -> None:
        """A broker that answers late is waited for, one that is not there is not. Raises LineageError."""
        problem = ""
        for server in self._servers.split(","):
            host, _, port = server.rpartition("://")[2].rpartition(":")
            try:
                socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
            except (OSError, ValueError) as error:
                problem = str(error)
            else:
                return
        raise BrokerUnavailableError(f"no Kafka broker answers at {self._servers} ({problem})")

    def _listed(self, topic: str) -> int:
        """How many partitions a topic has; 0 where it is not there."""
        self._check_that_something_listens()
        try:
            # Not of this topic alone: to ask for one that is missing may make it, with too few partitions.
            topics = self._producer.list_topics(timeout=4 * _ANSWER_S).topics
        except KafkaException as error:
            raise no_broker(self._servers, error) from error
        return len(topics[topic].partitions) if topic in topics else 0

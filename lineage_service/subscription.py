"""A member of a Kafka consumer group, seen through a small seam: poll, commit, pause, resume, close.

Promises that a topic partition is read from where its owner says, never from where Kafka's group stands,
that a message which the client cannot read stops nobody, and that everything happens inside `poll`, in the
caller's thread. Knows nothing of what messages mean.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from lineage_service.answers import LineageError, UnavailableError
from lineage_service.batches import Message
from lineage_service.kafka_client import NO_OPTIONS

__all__ = [
    "PASSING",
    "BrokerRefusedError",
    "BrokerUnavailableError",
    "KafkaSubscription",
    "Owner",
    "Place",
    "Subscription",
    "no_broker",
]

logger = logging.getLogger(__name__)

#: Partitions get their leaders, and a group its coordinator, a moment after they were made: ask again.
PASSING = frozenset(
    {
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    }
)

#: Messages that one poll may give: with blocks of at most 900 kB a bounded piece of memory.
POLL_MESSAGES = 100
_REQUEST_TIMEOUT_S = 10.0
#: The same trouble is logged once in so many seconds.
_REPEAT_S = 30.0


class BrokerUnavailableError(UnavailableError):
    """Kafka does not answer; the same call may succeed later."""


class BrokerRefusedError(LineageError):
    """Kafka answers and refuses; a person has to change something first."""


def no_broker(bootstrap_servers: str, error: KafkaException) -> BrokerUnavailableError:
    """What to say when nobody answers at all."""
    return BrokerUnavailableError(
        f"no Kafka broker answers at {bootstrap_servers} ({error.args[0].str()}); start one with "
        "`lineage up`, or say where it is with --kafka-bootstrap-servers"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A topic partition when it is assigned: the group's offset, and the first and next that the broker has.

    None where the broker did not say.
    """

    topic: str
    partition: int
    committed: int | None
    first: int | None
    next: int | None


class Owner(Protocol):
    """Who reads. Both are called from within `poll`; what they raise comes out of `poll`."""

    def start_at(self, place: Place) -> int | None:
        """The offset to read from; None: from the beginning."""

    def revoked(self, topic: str, partition: int) -> None:
        """The topic partition may belong to another member now; what was not stored is for it to read."""


class Subscription(Protocol):
    """Messages of some topics. `subscription_memory.MemorySubscription` is the in-memory twin."""

    def poll(self, timeout_s: float) -> list[Message]:
        """What came within the time, at most POLL_MESSAGES. Raises BrokerRefusedError.

        A message that stays unreadable comes as one with a `fault`, and is passed over.
        """

    def commit(self, topic: str, partition: int, next_offset: int) -> None:
        """Tell the group how far its stores are. Never raises: who reads next asks the stores."""

    def pause(self) -> None:
        """Give no messages, and stay a member, until `resume`. What is assigned meanwhile is paused too."""

    def resume(self) -> None:
        """Give messages again."""

    def close(self) -> None:
        """Leave the group, so that others take over at once."""


class KafkaSubscription:
    """The Subscription of a broker. For one thread."""

    def __init__(
        self,
        bootstrap_servers: str,
        group: str,
        topics: Sequence[str],
        owner: Owner,
        *,
        options: Mapping[str, str] = NO_OPTIONS,
    ) -> None:
        """`options` are further ones of the client: TLS, passwords."""
        self._owner = owner
        self._is_paused = False
        self._failure: LineageError | None = None
        self._told: dict[object, float] = {}
        self._next: dict[tuple[str, int], int] = {}  # the offset after what was given
        #: The offset of what cannot be read, and how often that was seen.
        self._unread: dict[tuple[str, int], tuple[int, int]] = {}
        self._consumer: Any = Consumer(
            {
                **options,
                "bootstrap.servers": bootstrap_servers,
                "group.id": group,
                "client.id": "lineage-consume",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",
                # A member that comes or goes stops nobody else.
                "partition.assignment.strategy": "cooperative-sticky",
                # A member that was killed is replaced after this time; the default is 45 s.
                "session.timeout.ms": 10_000,
                # What the client holds beyond what was polled.
                "queued.max.messages.kbytes": 65_536,
                # The client unpacks a batch whole: one that gets larger than this is unreadable to it. (Of
                # gzip and lz4 it does not ask beforehand; their packing is at most 1,032 and 255 to one.)
                "fetch.max.bytes": 4_000_000,
                "receive.message.max.bytes": 16_000_000,
                # How soon it looks again where it could not read.
                "fetch.error.backoff.ms": 50,
                # Topics that are made later are found within this time.
                "topic.metadata.refresh.interval.ms": 10_000,
                "log_level": 0,
                "error_cb": self._tell,
                "on_commit": self._on_commit,
            }
        )
        self._consumer.subscribe(
            list(topics), on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_revoke
        )

    def poll(self, timeout_s: float) -> list[Message]:
        messages = []
        unreadable: dict[tuple[str, int], Any] = {}  # one for each place: others are of the same try
        for message in self._consumer.consume(POLL_MESSAGES, timeout_s):
            place = message.topic(), message.partition()
            if message.error() is None:
                self._next[place] = message.offset() + 1
                self._unread.pop(place, None)
                messages.append(_message(message))
            elif message.error().code() in _UNREADABLE and place[0] is not None:
                unreadable[place] = message
            else:
                self._tell(message.error())
        for place, message in unreadable.items():
            messages += self._passed_over(place, message)
        if self._failure is not None:
            raise self._failure
        return messages

    def _passed_over(self, place: tuple[str, int], message: Any) -> list[Message]:
        """The unreadable message, once it is clear that it stays so: the client itself would wait for ever.

        The client names the first offset of a batch. Its other messages are found unreadable one by one.
        """
        first, times = self._unread.get(place, (-1, 0))
        times = times + 1 if first == message.offset() else 1
        self._unread[place] = message.offset(), times
        if times < _UNREADABLE_TIMES:
            return []
        offset = max(message.offset(), self._next.get(place, 0))
        try:
            self._consumer.seek(TopicPartition(*place, offset + 1))
        except KafkaException as error:  # no longer ours, perhaps
            self._tell(error.args[0])
            return []
        self._next[place] = offset + 1
        fault = f"Kafka's client cannot read it: {message.error().str()}"
        return [Message(topic=place[0], partition=place[1], offset=offset, key=None, value=None, fault=fault)]

    def commit(self, topic: str, partition: int, next_offset: int) -> None:
        try:
            self._consumer.commit(offsets=[TopicPartition(topic, partition, next_offset)], asynchronous=True)
        except KafkaException as error:
            self._tell(error.args[0])

    def pause(self) -> None:
        self._is_paused = True
        self._consumer.pause(self._consumer.assignment())

    def resume(self) -> None:
        self._is_paused = False
        self._consumer.resume(self._consumer.assignment())

    def close(self) -> None:
        self._consumer.close()

    # -- callbacks, all from within `consume` ----------------------------------------------------------

    def _on_assign(self, consumer: Any, partitions: list[Any]) -> None:
        committed = self._committed(partitions)
        for each in partitions:
            try:
                offset = self._owner.start_at(self._place(each, committed.get((each.topic, each.partition))))
            except LineageError as error:
                self._failure = error
                offset = None
            each.offset = OFFSET_BEGINNING if offset is None else offset
            self._next[each.topic, each.partition] = offset or 0
            self._unread.pop((each.topic, each.partition), None)
        consumer.incremental_assign(partitions)
        if self._is_paused:
            consumer.pause(partitions)

    def _on_revoke(self, _consumer: Any, partitions: Iterable[Any]) -> None:
        for each in partitions:
            self._owner.revoked(each.topic, each.partition)

    def _on_commit(self, error: Any, _partitions: object) -> None:
        if error is not None:
            self._tell(error)

    def _committed(self, partitions: list[Any]) -> dict[tuple[str, int], int]:
        try:
            found = self._consumer.committed(partitions, timeout=_REQUEST_TIMEOUT_S)
        except KafkaException as error:
            self._tell(error.args[0])
            return {}
        return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

    def _place(self, partition: Any, committed: int | None) -> Place:
        try:
            first, following = self._consumer.get_watermark_offsets(partition, timeout=_REQUEST_TIMEOUT_S)
        except KafkaException as error:
            self._tell(error.args[0])
            first = following = None
        return Place(
            topic=partition.topic,
            partition=partition.partition,
            committed=committed,
            first=first,
            next=following,
        )

    def _tell(self, error: Any) -> None:
        """Log a trouble that the client gets over by itself; keep one that it does not."""
        if error.fatal() or error.code() in _REFUSALS:
            self._failure = BrokerRefusedError(
                f"Kafka refuses: {error.str()}; see the broker's settings and rights"
            )
        now = time.monotonic()
        if now >= self._told.get(error.code(), 0.0) + _REPEAT_S:
            self._told[error.code()] = now
            logger.warning("Kafka: %s", error.str())


_UNREADABLE = frozenset({KafkaError._BAD_COMPRESSION, KafkaError._BAD_MSG})
#: So often it is tried: what was damaged on the way is whole the next time.
_UNREADABLE_TIMES = 3

_REFUSALS = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.INVALID_GROUP_ID,
    }
)


def _message(message: Any) -> Message:
    kind, time_ms = message.timestamp()
    return Message(
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        key=message.key(),
        value=message.value(),
        written_ms=None if kind == TIMESTAMP_NOT_AVAILABLE else time_ms,
    )

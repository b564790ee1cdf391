"""A member of a Kafka consumer group, seen through a small seam: poll, commit, pause, resume, close.

Promises that a topic partition is read from where its owner says, never from where Kafka's group stands,
that no message is given of a topic partition which was taken away, that a message which the client cannot
read stops nobody, and that everything happens inside `poll`, in the caller's thread. Knows nothing of what
messages mean.
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
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from lineage_service.decode.batches import Message
from lineage_service.errors import LineageError, UnavailableError
from lineage_service.kafka.client import NO_OPTIONS, SESSION, client_of
from lineage_service.kafka.group_owner import GroupTakenError, memory_of, other_owner

__all__ = [
    "PASSING",
    "BrokerRefusedError",
    "BrokerUnavailableError",
    "KafkaSubscription",
    "Owner",
    "Place",
    "Subscription",
    "no_broker",
    "unusable",
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
#: A commit that failed is made again after so many seconds.
_COMMIT_AGAIN_S = 1.0
#: How often it is asked whether the topics are still the same.
_LOOK_UP_S = 10.0
#: What brokers that know no ids of topics say (those before Kafka 2.8, and some that only speak like Kafka).
_NO_TOPIC_ID = "A" * 22
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


def unusable(bootstrap_servers: str, error: KafkaException) -> LineageError:
    """What to say when a request failed: the broker refuses, or it does not answer."""
    kafka_error = error.args[0]
    is_refused = kafka_error.code() in _REFUSALS
    return _refused(kafka_error) if is_refused else no_broker(bootstrap_servers, error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A topic partition when it is assigned: the group's offset, and the first and next that the broker has.

    None where the broker did not say. `topic_id` is the broker's own: a topic that is made anew has another.
    """

    topic: str
    partition: int
    committed: int | None
    first: int | None
    next: int | None
    topic_id: str | None = None


class Owner(Protocol):
    """Who reads. Both are called from within `poll`; what they raise comes out of `poll`."""

    def start_at(self, place: Place) -> int | None:
        """The offset to read from, and that all stores have; None: from the beginning.

        The group is told if it does not know.
        """

    def revoked(self, topic: str, partition: int) -> None:
        """The topic partition may belong to another member now; what was not stored is for it to read."""


class Subscription(Protocol):
    """Messages of some topics. `subscription_memory.MemorySubscription` is the in-memory twin."""

    def poll(self, timeout_s: float, most: int = POLL_MESSAGES) -> list[Message]:
        """What came within the time, at most `most`. Raises BrokerRefusedError.

        A message that stays unreadable comes as one with a `fault`, and is passed over.
        """

    def commit(self, topic: str, partition: int, next_offset: int) -> None:
        """Tell the group how far its stores are. Never raises: who reads next asks the stores.

        What the broker did not take is told again, as long as the topic partition is this member's.
        """

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
        queue_bytes: int = 64_000_000,
        store_id: str = "",
    ) -> None:
        """`options` are further ones of the client: TLS, passwords. `queue_bytes` of messages are read ahead.
        With `store_id` the group is that store's alone (`group_owner`).

        Raises BrokerUnavailableError.
        """
        self._group = group
        self._store_id = store_id
        self._first = topics[0], 0  # whose offset says which store's the group is
        self._is_unowned = False  # as the group said last
        self._owner_at = 0.0
        self._owner = owner
        self._is_paused = False
        self._failure: LineageError | None = None
        self._told: dict[object, float] = {}
        #: Assigned topic partitions with the offset that reading began at.
        self._starts: dict[tuple[str, int], int] = {}
        #: Those that were taken away within the poll that goes on.
        self._taken: set[tuple[str, int]] = set()
        #: How far the group was to be told; what it did not take, and when to tell it again.
        self._committing: dict[tuple[str, int], int] = {}
        self._uncommitted: set[tuple[str, int]] = set()
        self._commit_at = 0.0
        self._next: dict[tuple[str, int], int] = {}  # the offset after what was given
        #: The offset of what cannot be read, and how often that was seen.
        self._unread: dict[tuple[str, int], tuple[int, int]] = {}
        self._servers = bootstrap_servers
        self._admin: Any = client_of(
            AdminClient,
            {
                **options,
                "bootstrap.servers": bootstrap_servers,
                "client.id": "lineage-consume",
                "log_level": 0,
                "error_cb": lambda _error: None,
            },
        )
        self._topic_ids: dict[str, str] = {}
        self._asked: Mapping[str, Any] = {}  # topics whose ids the broker is looking up
        self._look_up_at = 0.0
        self._look_up(topics)
        self._consumer: Any = client_of(
            Consumer,
            {
                **SESSION,
                **options,
                "bootstrap.servers": bootstrap_servers,
                "group.id": group,
                "client.id": "lineage-consume",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",
                # A member that comes or goes stops nobody else.
                "partition.assignment.strategy": "cooperative-sticky",
                # What the client holds beyond what was polled.
                "queued.max.messages.kbytes": max(1, queue_bytes // 1024),
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
            },
        )
        self._consumer.subscribe(
            list(topics), on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_revoke
        )

    def poll(self, timeout_s: float, most: int = POLL_MESSAGES) -> list[Message]:
        messages = []
        unreadable: dict[tuple[str, int], Any] = {}  # one for each place: others are of the same try
        anew: set[tuple[str, int]] = set()  # offsets that were given come again: the topic is another
        self._taken.clear()
        given = self._consumer.consume(most, timeout_s)
        for message in self._without_taken(given) if self._taken else given:
            place = message.topic(), message.partition()
            if message.error() is None:
                if message.offset() < self._next.get(place, 0):
                    anew.add(place)
                    continue
                self._next[place] = message.offset() + 1
                self._unread.pop(place, None)
                messages.append(_message(message))
            elif message.error().code() in _UNREADABLE and place[0] is not None:
                unreadable[place] = message
            else:
                self._tell(message.error())
        self._commit_again()
        self._look_at_owner()
        for place, message in unreadable.items():
            messages += self._passed_over(place, message)
        if anew := (anew | self._of_other_topics()) & self._starts.keys():
            self._begin_anew(anew)
            messages = [each for each in messages if (each.topic, each.partition) not in anew]
        if self._failure is not None:
            raise self._failure
        return messages

    def _without_taken(self, given: list[Any]) -> list[Any]:
        """The messages without those of topic partitions that were taken away while they were gathered.

        Their owner has forgotten those before them; stored without these, they would leave a gap. What came
        back in the same moment is read from its start.
        """
        again = [TopicPartition(*place, self._starts[place]) for place in self._taken & self._starts.keys()]
        if again:
            self._consumer.incremental_unassign(again)
            self._assign(again)
        return [each for each in given if (each.topic(), each.partition()) not in self._taken]

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
        self._committing[topic, partition] = next_offset
        self._commit([(topic, partition)])

    def _commit(self, places: Iterable[tuple[str, int]]) -> None:
        memory = memory_of(self._store_id)
        offsets = [TopicPartition(*place, self._committing[place], memory) for place in places]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:
            self._on_commit(error.args[0], offsets)

    def _commit_again(self) -> None:
        if self._uncommitted and time.monotonic() >= self._commit_at:
            places = self._uncommitted & self._starts.keys() & self._committing.keys()
            self._uncommitted = set()
            if places:
                self._commit(places)

    def pause(self) -> None:
        self._is_paused = True
        self._consumer.pause(self._consumer.assignment())

    def resume(self) -> None:
        self._is_paused = False
        self._consumer.resume(self._consumer.assignment())

    def close(self) -> None:
        self._consumer.close()

    # -- callbacks, all from within `consume` ----------------------------------------------------------

    def _on_assign(self, _consumer: Any, partitions: list[Any]) -> None:
        self._look_up({each.topic for each in partitions})
        committed = self._committed(partitions)
        for each in partitions:
            try:
                offset = self._owner.start_at(self._place(each, committed.get((each.topic, each.partition))))
            except LineageError as error:
                self._failure = error
                offset = None
            each.offset = OFFSET_BEGINNING if offset is None else offset
        self._assign(partitions)
        if self._failure is not None:
            return
        for each in partitions:  # a member that died after the stores had it could not tell
            if each.offset > committed.get((each.topic, each.partition), 0):
                self.commit(each.topic, each.partition, each.offset)
        self._claim()

    def _assign(self, partitions: list[Any]) -> None:
        for each in partitions:
            place = each.topic, each.partition
            self._starts[place] = each.offset
            self._next[place] = max(each.offset, 0)
            self._unread.pop(place, None)
        self._consumer.incremental_assign(partitions)
        # The client remembers that something was paused beyond the time when it was this member's.
        if self._is_paused:
            self._consumer.pause(partitions)
        else:
            self._consumer.resume(partitions)

    def _on_revoke(self, _consumer: Any, partitions: Iterable[Any]) -> None:
        for each in partitions:
            place = each.topic, each.partition
            self._taken.add(place)
            for known in (self._starts, self._next, self._unread, self._committing):
                known.pop(place, None)
            self._owner.revoked(*place)

    def _on_commit(self, error: Any, partitions: Iterable[Any]) -> None:
        refused = [each for each in partitions if (error or each.error) is not None]
        for each in refused:
            # Another one of the same topic partition may be under way, and would be further on.
            if self._committing.get((each.topic, each.partition)) == each.offset:
                self._uncommitted.add((each.topic, each.partition))
        if refused:
            self._commit_at = time.monotonic() + _COMMIT_AGAIN_S
            self._tell(error or refused[0].error)

    def _begin_anew(self, places: Iterable[tuple[str, int]]) -> None:
        """Assign once more what no longer is what it was."""
        partitions = [TopicPartition(*place) for place in places]
        self._consumer.incremental_unassign(partitions)
        self._on_revoke(self._consumer, partitions)
        self._on_assign(self._consumer, partitions)

    def _of_other_topics(self) -> set[tuple[str, int]]:
        """What is assigned of topics that were made anew. Asks now and then, and waits for no answer."""
        if not self._asked:
            if self._starts and time.monotonic() >= self._look_up_at:
                self._asked = self._describe({topic for topic, _ in self._starts})
            return set()
        if not all(future.done() for future in self._asked.values()):
            return set()
        asked, self._asked = self._asked, {}
        self._look_up_at = time.monotonic() + _LOOK_UP_S
        other = set()
        for topic, future in asked.items():
            if future.exception() is None:
                topic_id = str(future.result().topic_id)
                if topic_id not in (_NO_TOPIC_ID, self._topic_ids.get(topic)):
                    other.add(topic)
        return {place for place in self._starts if place[0] in other}

    def _describe(self, topics: Iterable[str]) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._admin.describe_topics(
            TopicCollection(list(topics)), request_timeout=_REQUEST_TIMEOUT_S
        )
        return found

    def _look_up(self, topics: Iterable[str]) -> None:
        """Learn the topics' ids. What is known already will do while the broker is away."""
        for topic, future in self._describe(topics).items():
            try:
                topic_id = str(future.result(2 * _REQUEST_TIMEOUT_S).topic_id)
            except KafkaException as error:
                code = error.args[0].code()
                if code in _REFUSALS:
                    raise _refused(error.args[0]) from error
                if topic not in self._topic_ids and code != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise no_broker(self._servers, error) from error
                self._tell(error.args[0])
            else:
                if topic_id != _NO_TOPIC_ID or topic not in self._topic_ids:
                    self._topic_ids[topic] = topic_id
        self._look_up_at = time.monotonic() + _LOOK_UP_S

    def _committed(self, partitions: list[Any]) -> dict[tuple[str, int], int]:
        wanted = list(partitions)
        if self._store_id and self._first not in {(each.topic, each.partition) for each in wanted}:
            wanted.append(TopicPartition(*self._first))
        try:
            found = self._consumer.committed(wanted, timeout=_REQUEST_TIMEOUT_S)
        except KafkaException as error:
            self._tell(error.args[0])
            self._owner_at = time.monotonic() + _COMMIT_AGAIN_S
            return {}
        self._see_owner(found)
        return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

    def _look_at_owner(self) -> None:
        """Another store may have come into the group at the same moment as this one."""
        if self._store_id and self._starts and time.monotonic() >= self._owner_at:
            self._committed([])
            self._claim()

    def _claim(self) -> None:
        """Put the store's id where no other stands."""
        if self._store_id and self._is_unowned and self._first in self._starts:
            self._is_unowned = False
            self.commit(*self._first, self._committing.get(self._first, max(self._starts[self._first], 0)))

    def _see_owner(self, found: Iterable[Any]) -> None:
        self._owner_at = time.monotonic() + _LOOK_UP_S
        for each in found:
            if (each.topic, each.partition) == self._first and each.error is None:
                owner = other_owner(each.metadata, self._store_id)
                self._is_unowned = not owner and each.metadata != memory_of(self._store_id)
                if owner:
                    self._failure = GroupTakenError(self._group, owner, self._store_id)

    def _place(self, partition: Any, committed: int | None) -> Place:
        try:
            first, following = self._consumer.get_watermark_offsets(partition, timeout=_REQUEST_TIMEOUT_S)
        except KafkaException as error:
            self._tell(error.args[0])
            first = following = None
        topic_id = self._topic_ids.get(partition.topic)
        if topic_id is None:  # no name would do: under another one the stores would not know what they have
            raise BrokerUnavailableError(f"the broker says nothing of topic {partition.topic}; try again")
        return Place(
            topic=partition.topic,
            partition=partition.partition,
            committed=committed,
            first=first,
            next=following,
            topic_id=None if topic_id == _NO_TOPIC_ID else topic_id,
        )

    def _tell(self, error: Any) -> None:
        """Log a trouble that the client gets over by itself; keep one that it does not."""
        if error.fatal() or error.code() in _REFUSALS:
            self._failure = _refused(error)
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


def _refused(error: Any) -> BrokerRefusedError:
    return BrokerRefusedError(f"Kafka refuses: {error.str()}; see the broker's settings and rights")


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

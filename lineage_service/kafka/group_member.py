"""A member of a Kafka consumer group: the Subscription of a broker.

Promises that a topic partition is read from where its owner says, never from where Kafka's group stands,
that no message is given of a topic partition which was taken away, that a message which the client cannot
read stops nobody, and that everything happens inside `poll`, in the caller's thread. Knows nothing of what
messages mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from lineage_service.decode.batches import Message
from lineage_service.errors import LineageError
from lineage_service.kafka.client import NO_OPTIONS, SESSION, client_of
from lineage_service.kafka.errors import BrokerUnavailableError, ErrorLog, is_refusal, refusal
from lineage_service.kafka.group_owner import OwnerWatch, memory_of
from lineage_service.kafka.pending_commits import PendingCommits, TopicPlace
from lineage_service.kafka.subscription import POLL_MESSAGES, Assignment, Owner
from lineage_service.kafka.topic_ids import NO_TOPIC_ID, TopicIds

__all__ = ["KafkaSubscription"]

_REQUEST_TIMEOUT_S = 10.0
_UNREADABLE = frozenset({KafkaError._BAD_COMPRESSION, KafkaError._BAD_MSG})
#: So often it is tried: what was damaged on the way is whole the next time.
_UNREADABLE_TIMES = 3


@dataclass(slots=True)
class _Position:
    """How far an assigned topic partition was read."""

    start: int  # the offset that reading began at
    next: int  # the offset after what was given
    unreadable: int = -1  # the offset of what cannot be read, and how often that was seen
    unreadable_times: int = 0

    def see_unreadable(self, offset: int) -> int:
        """How often the message at `offset` was found unreadable, this time included."""
        self.unreadable_times = self.unreadable_times + 1 if self.unreadable == offset else 1
        self.unreadable = offset
        return self.unreadable_times


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
        self._owner = owner
        self._memory = memory_of(store_id)
        self._watch = OwnerWatch(group, (topics[0], 0), store_id)
        self._log = ErrorLog()
        self._is_paused = False
        self._failure: LineageError | None = None
        self._positions: dict[TopicPlace, _Position] = {}  # of what is assigned
        self._revoked: set[TopicPlace] = set()  # within the poll that goes on
        self._commits = PendingCommits()
        self._topic_ids = TopicIds(self._admin(bootstrap_servers, options), bootstrap_servers, self._log)
        self._topic_ids.look_up(topics)
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
                "error_cb": self._report,
                "on_commit": self._on_commit,
            },
        )
        self._consumer.subscribe(
            list(topics), on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_revoke
        )

    def _admin(self, bootstrap_servers: str, options: Mapping[str, str]) -> Any:
        return client_of(
            AdminClient,
            {
                **options,
                "bootstrap.servers": bootstrap_servers,
                "client.id": "lineage-consume",
                "log_level": 0,
                "error_cb": lambda _error: None,
            },
        )

    # -- messages --------------------------------------------------------------------------------------

    def poll(self, timeout_s: float, most: int = POLL_MESSAGES) -> list[Message]:
        self._revoked.clear()
        received = self._consumer.consume(most, timeout_s)
        messages, unreadable, recreated = self._read(self._without_revoked(received))
        self._commit(self._commits.due() & self._positions.keys())
        self._look_at_owner()
        for place, message in unreadable.items():
            messages += self._passed_over(place, message)
        if recreated := (recreated | self._of_recreated_topics()) & self._positions.keys():
            self._assign_again(recreated)
            messages = [message for message in messages if _place_of(message) not in recreated]
        if self._failure is not None:
            raise self._failure
        return messages

    def _read(self, received: Iterable[Any]) -> tuple[list[Message], dict[TopicPlace, Any], set[TopicPlace]]:
        """The messages; those that cannot be read, one for each place; and places whose offsets come again.

        Offsets come again where a topic was recreated. Of what cannot be read, others are of the same try.
        """
        messages: list[Message] = []
        unreadable: dict[TopicPlace, Any] = {}
        recreated: set[TopicPlace] = set()
        for message in received:
            place = message.topic(), message.partition()
            error = message.error()
            if error is None:
                position = self._positions.get(place)
                if position is None:
                    continue
                if message.offset() < position.next:
                    recreated.add(place)
                    continue
                position.next, position.unreadable = message.offset() + 1, -1
                messages.append(_message(message))
            elif error.code() in _UNREADABLE and place in self._positions:
                unreadable[place] = message
            else:
                self._report(error)
        return messages, unreadable, recreated

    def _without_revoked(self, received: list[Any]) -> list[Any]:
        """The messages without those of topic partitions that were taken away while they were gathered.

        Their owner has forgotten those before them; stored without these, they would leave a gap. What came
        back in the same moment is read from its start.
        """
        if not self._revoked:
            return received
        again = [
            TopicPartition(*place, self._positions[place].start)
            for place in self._revoked & self._positions.keys()
        ]
        if again:
            self._consumer.incremental_unassign(again)
            self._assign(again)
        return [
            message for message in received if (message.topic(), message.partition()) not in self._revoked
        ]

    def _passed_over(self, place: TopicPlace, message: Any) -> list[Message]:
        """The unreadable message, once it is clear that it stays so: the client itself would wait for ever.

        The client names the first offset of a batch. Its other messages are found unreadable one by one.
        """
        position = self._positions.get(place)
        if position is None or position.see_unreadable(message.offset()) < _UNREADABLE_TIMES:
            return []
        offset = max(message.offset(), position.next)
        try:
            self._consumer.seek(TopicPartition(*place, offset + 1))
        except KafkaException as error:  # no longer ours, perhaps
            self._report(error.args[0])
            return []
        position.next = offset + 1
        fault = f"Kafka's client cannot read it: {message.error().str()}"
        return [Message(topic=place[0], partition=place[1], offset=offset, key=None, value=None, fault=fault)]

    def pause(self) -> None:
        self._is_paused = True
        self._consumer.pause(self._consumer.assignment())

    def resume(self) -> None:
        self._is_paused = False
        self._consumer.resume(self._consumer.assignment())

    def close(self) -> None:
        self._consumer.close()

    # -- offsets of the group ----------------------------------------------------------------------------

    def commit(self, topic: str, partition: int, next_offset: int) -> None:
        self._commits.add((topic, partition), next_offset)
        self._commit({(topic, partition)})

    def _commit(self, places: set[TopicPlace]) -> None:
        offsets = [TopicPartition(*place, self._commits.offset(place), self._memory) for place in places]
        if not offsets:
            return
        try:
            self._consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:
            self._on_commit(error.args[0], offsets)

    def _on_commit(self, error: Any, partitions: Iterable[Any]) -> None:
        refused = [partition for partition in partitions if (error or partition.error) is not None]
        if refused:
            self._commits.refuse((_place_of(partition), partition.offset) for partition in refused)
            self._report(error or refused[0].error)

    def _committed(self, partitions: list[Any]) -> dict[TopicPlace, int]:
        """What the group has committed; it says whose the group is, too."""
        asked = list(partitions)
        if self._watch.is_watching and self._watch.first not in map(_place_of, partitions):
            asked.append(TopicPartition(*self._watch.first))
        try:
            committed = self._consumer.committed(asked, timeout=_REQUEST_TIMEOUT_S)
        except KafkaException as error:
            self._report(error.args[0])
            self._watch.no_answer()
            return {}
        self._failure = self._watch.look(committed) or self._failure
        return {_place_of(partition): partition.offset for partition in committed if partition.offset >= 0}

    def _look_at_owner(self) -> None:
        """Another store may have come into the group at the same moment as this one."""
        if self._positions and self._watch.is_due:
            self._committed([])
            self._claim()

    def _claim(self) -> None:
        """Put the store's id where no other stands."""
        first = self._watch.first
        if first in self._positions and self._watch.take_claim():
            offset = self._commits.offset(first)
            self.commit(*first, max(self._positions[first].start, 0) if offset is None else offset)

    # -- what is assigned; called from within `consume` ------------------------------------------------

    def _on_assign(self, _consumer: Any, partitions: list[Any]) -> None:
        self._topic_ids.look_up({partition.topic for partition in partitions})
        committed = self._committed(partitions)
        for partition in partitions:
            try:
                offset = self._owner.start_at(
                    self._assignment(partition, committed.get(_place_of(partition)))
                )
            except LineageError as error:
                self._failure = error
                offset = None
            partition.offset = OFFSET_BEGINNING if offset is None else offset
        self._assign(partitions)
        if self._failure is not None:
            return
        for partition in partitions:  # a member that died after the stores had it could not commit
            if partition.offset > committed.get(_place_of(partition), 0):
                self.commit(partition.topic, partition.partition, partition.offset)
        self._claim()

    def _assign(self, partitions: list[Any]) -> None:
        for partition in partitions:
            position = _Position(partition.offset, max(partition.offset, 0))
            self._positions[_place_of(partition)] = position
        self._consumer.incremental_assign(partitions)
        # The client remembers that something was paused beyond the time when it was this member's.
        if self._is_paused:
            self._consumer.pause(partitions)
        else:
            self._consumer.resume(partitions)

    def _assign_again(self, places: Iterable[TopicPlace]) -> None:
        """Assign once more what no longer is what it was."""
        partitions = [TopicPartition(*place) for place in places]
        self._consumer.incremental_unassign(partitions)
        self._on_revoke(self._consumer, partitions)
        self._on_assign(self._consumer, partitions)

    def _on_revoke(self, _consumer: Any, partitions: Iterable[Any]) -> None:
        for partition in partitions:
            place = _place_of(partition)
            self._revoked.add(place)
            self._positions.pop(place, None)
            self._commits.forget(place)
            self._owner.revoked(*place)

    def _of_recreated_topics(self) -> set[TopicPlace]:
        recreated = self._topic_ids.recreated({topic for topic, _ in self._positions})
        return {place for place in self._positions if place[0] in recreated}

    def _assignment(self, partition: Any, committed: int | None) -> Assignment:
        try:
            first, following = self._consumer.get_watermark_offsets(partition, timeout=_REQUEST_TIMEOUT_S)
        except KafkaException as error:
            self._report(error.args[0])
            first = following = None
        topic_id = self._topic_ids.get(partition.topic)
        if topic_id is None:  # no name would do: under another one the stores would not know what they have
            raise BrokerUnavailableError(f"the broker says nothing of topic {partition.topic}; try again")
        return Assignment(
            topic=partition.topic,
            partition=partition.partition,
            committed=committed,
            first=first,
            next=following,
            topic_id=None if topic_id == NO_TOPIC_ID else topic_id,
        )

    def _report(self, error: Any) -> None:
        """Log an error that the client gets over by itself; remember one that it does not."""
        if error.fatal() or is_refusal(error):
            self._failure = refusal(error)
        self._log.add(error)


def _place_of(partition: Any) -> TopicPlace:
    """Where a message or an offset belongs."""
    return partition.topic, partition.partition


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

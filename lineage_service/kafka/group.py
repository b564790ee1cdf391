"""Where a consumer group stands in its topics, seen through a small seam by one who never joins it.

Promises that looking moves nothing: no membership, no commit, no rebalance, and no topic made. Every look has
a time budget. Knows nothing of stores and of what messages mean.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from lineage_service.kafka.client import NO_OPTIONS, SESSION, client_of, silent_log
from lineage_service.kafka.errors import TRANSIENT_ERRORS, BrokerUnavailableError

__all__ = ["Group", "GroupState", "KafkaGroup", "Partition", "PartitionState"]

Partition = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """One topic partition: what the group has committed, and the first and next offset that the broker has.

    `committed` is None where the group never committed anything.
    """

    topic: str
    partition: int
    committed: int | None
    first: int
    next: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupState:
    """`partitions` are of those topics that exist, in order; `members` is None where nobody knows."""

    members: int | None
    partitions: tuple[PartitionState, ...]


class Group(Protocol):
    """A consumer group, looked at. `testing.group.MemoryGroup` is its twin. Threads may share it."""

    def state(self, topics: Iterable[str], timeout_s: float) -> GroupState:
        """Raises BrokerUnavailableError, also when the time is over."""

    def times(self, offsets: Mapping[Partition, int], timeout_s: float) -> dict[Partition, int]:
        """Kafka's time (Unix ms) of the first message at or after each offset.

        Left out: where there is none, or none with a time, or none came within the time. Raises
        BrokerUnavailableError.
        """


class KafkaGroup:
    """The Group of a broker."""

    def __init__(self, bootstrap_servers: str, name: str, *, options: Mapping[str, str] = NO_OPTIONS) -> None:
        """`options` are further ones of the client: TLS, passwords."""
        self._servers = bootstrap_servers
        self._name = name
        self._options = options
        self._lock = Lock()
        self._client: Any = None

    def state(self, topics: Iterable[str], timeout_s: float) -> GroupState:
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                return self._state(topics, deadline)
            except KafkaException as error:
                if error.args[0].code() not in TRANSIENT_ERRORS or time.monotonic() > deadline:
                    raise self._unavailable(error) from error
                time.sleep(0.1)
            except FutureTimeoutError as error:
                raise self._unavailable(error) from error

    def _state(self, topics: Iterable[str], deadline: float) -> GroupState:
        """1. Which partitions there are. 2. Their ends, side by side. 3. What is committed; the members."""
        admin = self._admin()
        existing = admin.list_topics(timeout=_left(deadline)).topics
        places = [
            (name, number)
            for name in sorted(set(topics))
            if name in existing
            for number in sorted(existing[name].partitions)
        ]
        left = _left(deadline)
        first = admin.list_offsets(_specs(places, OffsetSpec.earliest()), request_timeout=left)
        following = admin.list_offsets(_specs(places, OffsetSpec.latest()), request_timeout=left)
        committed = self._committed(places, deadline)
        firsts, nexts = _offsets(first, deadline), _offsets(following, deadline)
        return GroupState(
            members=self._members(deadline),
            partitions=tuple(
                PartitionState(
                    topic=place[0],
                    partition=place[1],
                    committed=committed.get(place),
                    first=firsts[place],
                    next=nexts[place],
                )
                for place in places
            ),
        )

    def _committed(self, places: Sequence[Partition], deadline: float) -> dict[Partition, int]:
        """Asked by a consumer, since an admin client crashes the process when the coordinator has moved.

        (A null pointer: librdkafka, issue 5040.)
        """
        with self._reader() as reader:
            offsets = reader.committed([TopicPartition(*place) for place in places], timeout=_left(deadline))
        return {(place.topic, place.partition): place.offset for place in offsets if place.offset >= 0}

    def _members(self, deadline: float) -> int | None:
        """Asked of all brokers, since a question to the coordinator crashes the process when that has gone.

        (An assertion: librdkafka, issue 4605. So a call is used that the client calls deprecated.)
        It fails where one of the brokers is away, though all else is known.
        """
        try:
            groups = self._admin().list_groups(self._name, timeout=_left(deadline))
        except KafkaException:
            return None
        if any(group.error is not None for group in groups):
            return None  # the group has no coordinator that knows
        return sum(len(group.members) for group in groups)

    def times(self, offsets: Mapping[Partition, int], timeout_s: float) -> dict[Partition, int]:
        """Reads one message of each partition."""
        if not offsets:
            return {}
        deadline = time.monotonic() + timeout_s
        times: dict[Partition, int] = {}
        waiting = set(offsets)
        try:
            with self._reader() as reader:
                reader.assign([TopicPartition(*place, offset) for place, offset in offsets.items()])
                while waiting and (left := deadline - time.monotonic()) > 0:
                    message = reader.poll(min(left, 0.1))
                    place = None if message is None else (message.topic(), message.partition())
                    if message is None or place not in waiting:
                        continue
                    if message.error() is None:
                        kind, stamp = message.timestamp()
                        if kind != TIMESTAMP_NOT_AVAILABLE:
                            times[place] = stamp
                    elif message.error().code() != KafkaError._PARTITION_EOF:
                        continue
                    waiting.discard(place)
                    # What else the client holds of it is thrown away.
                    reader.pause([TopicPartition(*place)])
        except KafkaException as error:
            raise self._unavailable(error) from error
        return times

    @contextmanager
    def _reader(self) -> Iterator[Any]:
        """A client that only asks and assigns: without a subscription it is no member of the group."""
        reader = client_of(
            Consumer,
            {
                **SESSION,
                **self._options,
                "bootstrap.servers": self._servers,
                "group.id": self._name,
                "client.id": "lineage-lag",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                # One message of each partition is enough.
                "queued.min.messages": 1,
                "log_level": 0,
                "error_cb": _ignore,
            },
        )
        try:
            yield reader
        finally:
            reader.close()

    def _admin(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = client_of(
                    AdminClient,
                    {
                        **self._options,
                        "bootstrap.servers": self._servers,
                        "client.id": "lineage-lag",
                        # A broker that comes back is found within a second.
                        "reconnect.backoff.max.ms": 1_000,
                        "error_cb": _ignore,
                    },
                    logger=silent_log,
                )
            return self._client

    def _unavailable(self, error: Exception) -> BrokerUnavailableError:
        why = error.args[0].str() if isinstance(error, KafkaException) else "no answer in time"
        return BrokerUnavailableError(
            f"no Kafka broker at {self._servers} says where group {self._name} is ({why}); start one with "
            "`lineage up`, or say where it is with --kafka-bootstrap-servers"
        )


def _ignore(_error: object) -> None:
    """The client's own remarks: what matters is raised where it was asked."""


def _specs(places: Sequence[Partition], spec: Any) -> dict[Any, Any]:
    return {TopicPartition(*place): spec for place in places}


def _offsets(futures: Mapping[Any, Future[Any]], deadline: float) -> dict[Partition, int]:
    return {
        (place.topic, place.partition): _result(future, deadline).offset for place, future in futures.items()
    }


def _result(future: Future[Any], deadline: float) -> Any:
    return future.result(timeout=_left(deadline))


def _left(deadline: float) -> float:
    """Seconds that are left; the client takes no less than these."""
    return max(deadline - time.monotonic(), 0.05)

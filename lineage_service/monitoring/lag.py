"""The lag: what waits in Kafka for the consumer group, and what applications wait for.

Promises that a look takes no longer than its time budget, and that all who ask within a moment get the
result of one look, an error too. Rates come from two looks, so the first has none. Knows neither HTTP nor
Kafka clients nor Delta.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from lineage_service.errors import UnavailableError
from lineage_service.kafka.group import Group, GroupState, Partition, PartitionState
from lineage_service.lineage import GroupLag, Lag, PartitionLag
from lineage_service.monitoring.incomplete_applications import IncompleteApplications, IncompleteWatch

if TYPE_CHECKING:
    from lineage_service.settings import Settings

__all__ = ["LagWatch", "open_lag"]

#: One look may take so long: half of it for Kafka's offsets, half for the times of messages.
KAFKA_BUDGET_S = 4.0
STORE_BUDGET_S = 2.0
#: Who asks within this time gets the same result.
_SHARED_S = 0.5
#: Rates are taken over so many seconds where there were looks, and never over fewer or more than these.
_RATE_S, _RATE_LEAST_S, _RATE_MOST_S = 15.0, 1.5, 300.0


def open_lag(settings: Settings) -> LagWatch:
    """The lag of the settings' group, topics and store. Opens nothing before the first look."""
    from lineage_service.kafka import client
    from lineage_service.kafka.group import KafkaGroup
    from lineage_service.store.flow_store import existing_store

    return LagWatch(
        KafkaGroup(
            settings.kafka_bootstrap_servers,
            settings.consumer_group,
            options=client.options(settings),
        ),
        IncompleteWatch(partial(existing_store, settings)),
        name=settings.consumer_group,
        topics=[settings.node_topic, settings.flow_topic],
        dead_letter_topic=settings.dead_letter_topic,
    )


@dataclass(frozen=True, slots=True)
class _Look:
    """When, and how far the group and the topics were then."""

    at: float
    consumed: Mapping[Partition, int]
    next: Mapping[Partition, int]


class LagWatch:
    """Looks at one group and one store. Threads may share it."""

    def __init__(
        self,
        group: Group,
        incomplete: IncompleteWatch,
        *,
        name: str,
        topics: Sequence[str],
        dead_letter_topic: str,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`now` is Unix time in seconds, to compare with Kafka's times of messages."""
        self._group = group
        self._incomplete = incomplete
        self._name = name
        self._topics = frozenset(topics)
        self._dead_letter_topic = dead_letter_topic
        self._clock = clock
        self._now = now
        self._lock = Lock()
        self._looks: deque[_Look] = deque()
        self._times: dict[Partition, tuple[int, int]] = {}  # offset, Unix ms
        self._answer: GroupLag | UnavailableError | None = None
        self._answered_at = 0.0

    def look(self) -> Lag:
        """Everything. Raises UnavailableError."""
        group, incomplete = self.group(), self.applications()
        return Lag(group=group, applications=incomplete.applications, unread_applications=incomplete.unread)

    def applications(self) -> IncompleteApplications:
        """Those that run or are not complete. Raises UnavailableError."""
        return self._incomplete.look(STORE_BUDGET_S)

    def group(self) -> GroupLag:
        """What waits in Kafka. Raises UnavailableError."""
        with self._lock:
            if self._answer is None or self._clock() >= self._answered_at + _SHARED_S:
                try:
                    self._answer = self._look()
                except UnavailableError as error:
                    self._answer = error
                self._answered_at = self._clock()
            if isinstance(self._answer, UnavailableError):
                raise self._answer.with_traceback(None)  # raised by each who asks
            return self._answer

    # -- one look ------------------------------------------------------------------------------------

    def _look(self) -> GroupLag:
        """1. The offsets. 2. The times of the first messages that wait. 3. The rates since earlier looks."""
        state = self._group.state({*self._topics, self._dead_letter_topic}, KAFKA_BUDGET_S / 2)
        consumed = [partition for partition in state.partitions if partition.topic in self._topics]
        times = self._times_of(consumed)
        partitions = tuple(self._partition(partition, times) for partition in consumed)
        messages = sum(partition.messages for partition in partitions)
        rate, incoming = self._rates(consumed)
        return GroupLag(
            name=self._name,
            members=state.members,
            messages=messages,
            seconds=_largest(partitions),
            rate=rate,
            incoming_rate=incoming,
            drain_seconds=_drain(messages, rate, incoming),
            dead_letters=self._dead_letters(state),
            partitions=partitions,
        )

    def _times_of(self, consumed: Sequence[PartitionState]) -> dict[Partition, int]:
        """The time of a message never changes, so only those are asked for that were not read yet."""
        offsets = {
            (partition.topic, partition.partition): _position(partition)
            for partition in consumed
            if _waiting(partition)
        }
        self._times = {
            place: self._times[place]
            for place, offset in offsets.items()
            if place in self._times and self._times[place][0] == offset
        }
        unread = {place: offset for place, offset in offsets.items() if place not in self._times}
        if unread:
            for place, stamp in self._group.times(unread, KAFKA_BUDGET_S / 2).items():
                self._times[place] = unread[place], stamp
        return {place: stamp for place, (_, stamp) in self._times.items()}

    def _partition(self, state: PartitionState, times: Mapping[Partition, int]) -> PartitionLag:
        messages = _waiting(state)
        stamp = times.get((state.topic, state.partition))
        age = None if stamp is None else max(self._now() - stamp / 1000, 0.0)  # clocks differ
        return PartitionLag(
            topic=state.topic,
            partition=state.partition,
            committed=state.committed,
            first=state.first,
            next=state.next,
            messages=messages,
            seconds=age if messages else 0.0,
        )

    def _rates(self, consumed: Sequence[PartitionState]) -> tuple[float | None, float | None]:
        """Messages a second that were consumed and that came, since an earlier look."""
        look = _Look(
            self._clock(),
            {(state.topic, state.partition): _position(state) for state in consumed},
            {(state.topic, state.partition): state.next for state in consumed},
        )
        # The earliest within the window, and one before it: what is older is of no use.
        while len(self._looks) > 1 and self._looks[1].at <= look.at - _RATE_S:
            self._looks.popleft()
        if self._looks and self._looks[0].at < look.at - _RATE_MOST_S:
            self._looks.popleft()
        before = self._looks[0] if self._looks else None
        self._looks.append(look)
        if before is None or look.at - before.at < _RATE_LEAST_S:
            return None, None
        passed = look.at - before.at
        return _moved(before.consumed, look.consumed) / passed, _moved(before.next, look.next) / passed

    def _dead_letters(self, state: GroupState) -> int:
        return sum(
            partition.next - partition.first
            for partition in state.partitions
            if partition.topic == self._dead_letter_topic
        )


def _position(state: PartitionState) -> int:
    """The first message that waits: not before what the broker still has, not after its end."""
    return min(max(state.committed or 0, state.first), state.next)


def _waiting(state: PartitionState) -> int:
    return state.next - _position(state)


def _largest(partitions: Sequence[PartitionLag]) -> float | None:
    """None where something waits and the age of nothing is known."""
    ages = [lag.seconds for lag in partitions if lag.messages and lag.seconds is not None]
    return max(ages, default=None if any(lag.messages for lag in partitions) else 0.0)


def _moved(before: Mapping[Partition, int], after: Mapping[Partition, int]) -> int:
    return sum(max(offset - before.get(place, offset), 0) for place, offset in after.items())


def _drain(messages: int, rate: float | None, incoming: float | None) -> float | None:
    if not messages:
        return 0.0
    if rate is None or incoming is None or rate <= incoming:
        return None
    return messages / (rate - incoming)

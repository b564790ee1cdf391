"""Messages that wait to be a batch, by topic partition: when one is due, and how many more may be taken.

Knows nothing of brokers, of stores, and of what messages mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lineage_service.decode.batches import Message
from lineage_service.kafka.subscription import POLL_MESSAGES
from spark_agent import contract

__all__ = ["GatheredMessages", "Limits"]

#: What a message takes beside its bytes: 230 in Python (measured), and as much while it is decoded.
MESSAGE_OVERHEAD = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """A partition's messages are written when they have so many bytes, or the first is so old.

    All partitions together hold `gathered_bytes` at most before one of them is written, and one message more.
    """

    max_bytes: int
    max_seconds: float
    gathered_bytes: int = 128_000_000


@dataclass(slots=True)
class _Messages:
    """Those of one topic partition. The first came at `since`."""

    since: float
    bytes: int = 0
    messages: list[Message] = field(default_factory=list)


class GatheredMessages:
    """What was taken off the topics and is in no batch yet."""

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._partitions: dict[tuple[str, int], _Messages] = {}

    def __bool__(self) -> bool:
        return bool(self._partitions)

    def __getitem__(self, place: tuple[str, int]) -> Sequence[Message]:
        return self._partitions[place].messages

    @property
    def bytes(self) -> int:
        """Bytes of the messages. May be asked from another thread."""
        return sum(partition.bytes for partition in list(self._partitions.values()))

    @property
    def is_full(self) -> bool:
        return self._memory() >= self._limits.gathered_bytes

    def room(self) -> int:
        """How many messages may be taken; one at least, for what is full is written before the next."""
        room = (self._limits.gathered_bytes - self._memory()) // contract.MAX_MESSAGE_BYTES
        return min(max(room, 1), POLL_MESSAGES)

    def _memory(self) -> int:
        return sum(
            partition.bytes + MESSAGE_OVERHEAD * len(partition.messages)
            for partition in self._partitions.values()
        )

    def add(self, message: Message) -> None:
        place = message.topic, message.partition
        partition = self._partitions.get(place)
        if partition is None:
            partition = self._partitions[place] = _Messages(self._clock())
        partition.messages.append(message)
        partition.bytes += message.bytes

    def next(self, *, is_due: bool) -> tuple[str, int] | None:
        """The partition that waits longest, so that none starves beside busier ones.

        `is_due`: only one that has enough, or has waited long enough.
        """
        places = [
            place for place, partition in self._partitions.items() if not is_due or self._is_due(partition)
        ]
        return min(places, key=lambda place: self._partitions[place].since) if places else None

    def _is_due(self, partition: _Messages) -> bool:
        return (
            partition.bytes >= self._limits.max_bytes
            or self._clock() - partition.since >= self._limits.max_seconds
            or self.is_full
        )

    def take(self, place: tuple[str, int], count: int) -> int:
        """Leave out the first messages of a partition, which are in a batch now. Their bytes."""
        partition = self._partitions[place]
        size = sum(message.bytes for message in partition.messages[:count])
        partition.since = self._clock()
        partition.bytes -= size
        del partition.messages[:count]
        if not partition.messages:
            del self._partitions[place]
        return size

    def drop(self, place: tuple[str, int]) -> None:
        """Forget those of a partition."""
        self._partitions.pop(place, None)

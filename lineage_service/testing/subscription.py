"""The in-memory twin of a subscription: topics as lists, one member, rebalances on demand.

Keeps the promises of `subscription`. `committed` is what the group would know; it outlives the member when
the same log is given to the next.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lineage_service.decode.batches import Message
from lineage_service.kafka.subscription import POLL_MESSAGES, Assignment, Owner

__all__ = ["MemoryLog", "MemorySubscription"]

Partition = tuple[str, int]


@dataclass(slots=True)
class MemoryLog:
    """Topic partitions with their messages, and what the group has committed."""

    messages: dict[Partition, list[Message]] = field(default_factory=dict)
    committed: dict[Partition, int] = field(default_factory=dict)
    topic_id: str | None = None  # of all topics; a log that was recreated has another

    def append(self, topic: str, partition: int, *values: bytes | None) -> None:
        messages = self.messages.setdefault((topic, partition), [])
        for value in values:
            messages.append(
                Message(topic=topic, partition=partition, offset=len(messages), key=None, value=value)
            )


class MemorySubscription:
    """The Subscription of a MemoryLog. It is assigned every partition at its first poll."""

    def __init__(self, log: MemoryLog, owner: Owner) -> None:
        self._log = log
        self._owner = owner
        self._positions: dict[Partition, int] = {}
        self._revoked: set[Partition] = set()
        self.is_paused = False
        self.is_closed = False

    def poll(self, timeout_s: float, most: int = POLL_MESSAGES) -> list[Message]:
        for partition in self._log.messages.keys() - self._positions.keys() - self._revoked:
            position = self._owner.start_at(self._assignment(partition)) or 0
            self._positions[partition] = position
            if position > self._log.committed.get(partition, 0):
                self._log.committed[partition] = position
        messages: list[Message] = []
        for partition, position in self._positions.items() if not self.is_paused else ():
            piece = self._log.messages[partition][position : position + most - len(messages)]
            self._positions[partition] += len(piece)
            messages += piece
        return messages

    def commit(self, topic: str, partition: int, next_offset: int) -> None:
        self._log.committed[topic, partition] = next_offset

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False

    def close(self) -> None:
        self.is_closed = True

    def revoke(self, topic: str, partition: int) -> None:
        """Another member takes the partition."""
        self._positions.pop((topic, partition), None)
        self._revoked.add((topic, partition))
        self._owner.revoked(topic, partition)

    def assign(self, topic: str, partition: int) -> None:
        """The partition comes back, at the next poll."""
        self._revoked.discard((topic, partition))

    def _assignment(self, partition: Partition) -> Assignment:
        return Assignment(
            topic=partition[0],
            partition=partition[1],
            committed=self._log.committed.get(partition),
            first=0,
            next=len(self._log.messages[partition]),
            topic_id=self._log.topic_id,
        )

"""A member of a consumer group, seen through a small seam: poll, commit, pause, resume, close.

`group_member.KafkaSubscription` is the one of a broker, `testing.subscription.MemorySubscription` its twin
in memory. Knows nothing of what messages mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from lineage_service.decode.batches import Message

__all__ = ["POLL_MESSAGES", "Assignment", "Owner", "Subscription"]

#: Messages that one poll may give: with blocks of at most 900 kB a bounded piece of memory.
POLL_MESSAGES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A topic partition when it is assigned: the group's offset, and the first and next that the broker has.

    None where the broker did not say. `topic_id` is the broker's own: a topic that is recreated has another.
    """

    topic: str
    partition: int
    committed: int | None
    first: int | None
    next: int | None
    topic_id: str | None = None


class Owner(Protocol):
    """Who reads. Both are called from within `poll`; what they raise comes out of `poll`."""

    def start_at(self, assignment: Assignment) -> int | None:
        """The offset to read from, and that all stores have; None: from the beginning.

        It is committed to the group if the group has a lower one.
        """

    def revoked(self, topic: str, partition: int) -> None:
        """The topic partition may belong to another member now; what was not stored is for it to read."""


class Subscription(Protocol):
    """Messages of some topics, for one member of a group."""

    def poll(self, timeout_s: float, most: int = POLL_MESSAGES) -> list[Message]:
        """What came within the time, at most `most`. Raises BrokerRefusedError.

        A message that stays unreadable comes as one with a `fault`, and is passed over.
        """

    def commit(self, topic: str, partition: int, next_offset: int) -> None:
        """Commit to the group how far its stores are. Never raises: who reads next asks the stores.

        What the broker did not take is sent again, as long as the topic partition is this member's.
        """

    def pause(self) -> None:
        """Give no messages, and stay a member, until `resume`. What is assigned meanwhile is paused too."""

    def resume(self) -> None:
        """Give messages again."""

    def close(self) -> None:
        """Leave the group, so that others take over at once."""

"""Whose a consumer group is: the store that its offsets speak of, by the id that the store was made with.

Two stores in one group would each get a part of every application. So a store's id stands with the offset
that the group has committed in the first partition of the first topic, and a process with another store is
refused:
 1. Before it joins (`group_claim`): nobody who is at work is disturbed.
 2. When it is given topic partitions, and every few seconds: of two that began at one moment one stays.
A group without an id, new or of an earlier version, belongs to the first that comes. The offset is that of
one partition, so that there is one answer, whoever commits. Knows no broker, and of stores only their ids.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from lineage_service.errors import LineageError

__all__ = ["GroupTakenError", "OwnerWatch", "memory_of", "other_owner"]

_MARK = "store="
#: How often it is asked whose the group is, and how soon after no answer.
_LOOK_UP_S, _LOOK_AGAIN_S = 10.0, 1.0


class GroupTakenError(LineageError):
    """The consumer group belongs to another store."""

    def __init__(self, group: str, owner: str, store_id: str) -> None:
        super().__init__(
            f"consumer group {group} belongs to another flow store (its id is {owner}, this one's is "
            f"{store_id}), and each of the two would lack a part: name another group with --consumer-group, "
            "or stop those who consume and give the group to this store with --reset-group"
        )


def memory_of(store_id: str) -> str:
    """What Kafka keeps with an offset of the store."""
    return f"{_MARK}{store_id}" if store_id else ""


def other_owner(memory: str | None, store_id: str) -> str:
    """The id of the store that the group belongs to, if that is another one; else empty."""
    owner = (memory or "").removeprefix(_MARK) if (memory or "").startswith(_MARK) else ""
    return owner if owner and store_id and owner != store_id else ""


class OwnerWatch:
    """Sees, for one member, whose the group is: now and then, and by the offset of its `first` partition.

    Watches nothing where the store has no id.
    """

    def __init__(self, group: str, first: tuple[str, int], store_id: str) -> None:
        self.first = first
        self.is_watching = bool(store_id)
        self._group = group
        self._store_id = store_id
        self._is_unowned = False  # as the group said last
        self._look_at = 0.0

    @property
    def is_due(self) -> bool:
        return self.is_watching and time.monotonic() >= self._look_at

    def no_answer(self) -> None:
        """The broker did not say."""
        self._look_at = time.monotonic() + _LOOK_AGAIN_S

    def look(self, committed: Iterable[Any]) -> GroupTakenError | None:
        """What is wrong, by the offsets that the group has committed."""
        self._look_at = time.monotonic() + _LOOK_UP_S
        taken = None
        for partition in committed:
            if (partition.topic, partition.partition) == self.first and partition.error is None:
                owner = other_owner(partition.metadata, self._store_id)
                self._is_unowned = not owner and partition.metadata != memory_of(self._store_id)
                if owner:
                    taken = GroupTakenError(self._group, owner, self._store_id)
        return taken

    def take_claim(self) -> bool:
        """Is the group to be claimed for this store? True once."""
        is_unowned, self._is_unowned = self._is_unowned, False
        return self.is_watching and is_unowned

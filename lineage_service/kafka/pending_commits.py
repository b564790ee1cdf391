"""Offsets that a consumer group was sent, until the broker has taken them. Knows no broker."""

from __future__ import annotations

import time
from collections.abc import Iterable

__all__ = ["PendingCommits", "TopicPlace"]

#: A commit that failed is made again after so many seconds.
_COMMIT_AGAIN_S = 1.0

#: (topic, partition)
TopicPlace = tuple[str, int]


class PendingCommits:
    """The last offset of each topic partition, and which of them the broker refused and gets again."""

    def __init__(self) -> None:
        self._offsets: dict[TopicPlace, int] = {}
        self._refused: set[TopicPlace] = set()
        self._again_at = 0.0

    def add(self, place: TopicPlace, next_offset: int) -> None:
        self._offsets[place] = next_offset

    def offset(self, place: TopicPlace) -> int | None:
        """What was sent last."""
        return self._offsets.get(place)

    def forget(self, place: TopicPlace) -> None:
        """The topic partition is another member's now."""
        self._offsets.pop(place, None)

    def refuse(self, offsets: Iterable[tuple[TopicPlace, int]]) -> None:
        """The broker did not take these."""
        self._again_at = time.monotonic() + _COMMIT_AGAIN_S
        for place, offset in offsets:
            # Another one of the same topic partition may be under way, and would be further on.
            if self._offsets.get(place) == offset:
                self._refused.add(place)

    def due(self) -> set[TopicPlace]:
        """Those to send again, each of them once."""
        if not self._refused or time.monotonic() < self._again_at:
            return set()
        places, self._refused = self._refused, set()
        return places & self._offsets.keys()

"""Walks that were not finished in time or may be asked for their next page, within a bound of memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock

from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.walk.cross_application import CrossApplicationTrace

LocalTrace = CrossApplicationTrace[Snapshot, Integers]

#: The commonest of 82 million words has 50 million sources: 230 MB of positions.
CACHE_BYTES = 256 << 20


class WalkCache:
    """The walks that were used last. A walk is with one thread at a time. Threads may share this."""

    def __init__(self, max_bytes: int = CACHE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = Lock()
        self._kept: OrderedDict[Hashable, tuple[LocalTrace, int]] = OrderedDict()

    def take(self, question: Hashable) -> LocalTrace | None:
        """The walk of a question, no longer kept here; None when there is none, or more came to be stored."""
        with self._lock:
            walk, _ = self._kept.pop(question, (None, 0))
        return walk if walk is not None and walk.is_current() else None

    def keep(self, question: Hashable, walk: LocalTrace) -> None:
        """Keep it, and let go of those used longest ago, so that all take at most `max_bytes`."""
        size = walk.bytes
        if size > self._max_bytes:
            return
        with self._lock:
            self._kept.pop(question, None)
            self._kept[question] = walk, size
            while sum(bytes_of_walk for _, bytes_of_walk in self._kept.values()) > self._max_bytes:
                self._kept.popitem(last=False)

"""Walks that were not finished in time, or whose next page may be requested, within a bound of memory."""

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
    """The walks that were used last. A walk is used by one thread at a time. Threads may share this."""

    def __init__(self, max_bytes: int = CACHE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = Lock()
        self._walks: OrderedDict[Hashable, tuple[LocalTrace, int]] = OrderedDict()

    def take(self, query: Hashable) -> LocalTrace | None:
        """Take the walk of a query out; None when there is none, or more was stored since."""
        with self._lock:
            walk, _ = self._walks.pop(query, (None, 0))
        return walk if walk is not None and walk.is_current() else None

    def put(self, query: Hashable, walk: LocalTrace) -> None:
        """Cache it, and drop those used longest ago, so that all take at most `max_bytes`."""
        size = walk.bytes
        if size > self._max_bytes:
            return
        with self._lock:
            self._walks.pop(query, None)
            self._walks[query] = walk, size
            while sum(bytes_of_walk for _, bytes_of_walk in self._walks.values()) > self._max_bytes:
                self._walks.popitem(last=False)

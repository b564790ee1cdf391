"""Row groups that were read last, within a bound of bytes. Knows nothing of what they hold."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, Protocol, TypeVar

__all__ = ["RowGroupCache"]


class _Sized(Protocol):
    @property
    def bytes(self) -> int: ...


Rows = TypeVar("Rows", bound=_Sized)


class RowGroupCache(Generic[Rows]):
    """Row groups by (file, number), up to `max_bytes`. Threads may share it."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._lock = Lock()
        self._cached: OrderedDict[tuple[str, int], Rows] = OrderedDict()

    def rows(self, file: str, number: int, read: Callable[[], Rows]) -> Rows:
        """What is cached of a row group, or what `read` gives, which is cached then."""
        key = file, number
        with self._lock:
            cached = self._cached.get(key)
            if cached is not None:
                self._cached.move_to_end(key)
                return cached
        rows = read()
        with self._lock:
            if key not in self._cached:
                self._cached[key] = rows
                self._bytes += rows.bytes
                while self._bytes > self._max_bytes:
                    self._bytes -= self._cached.popitem(last=False)[1].bytes
        return rows

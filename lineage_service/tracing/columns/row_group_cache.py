"""What was read last of row groups, within a bound of bytes. Knows nothing of what it is."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any, Protocol, TypeVar

__all__ = ["RowGroupCache"]


class _Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


Part = TypeVar("Part", bound=_Sized)


class RowGroupCache:
    """Parts of row groups by (file, number, name of the part), up to `max_bytes`. Threads may share it."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._lock = Lock()
        self._cached: OrderedDict[tuple[str, int, str], Any] = OrderedDict()

    def part(self, file: str, number: int, name: str, read: Callable[[], Part]) -> Part:
        """What is cached, or what `read` gives, which is cached then. A name stands for one type."""
        key = file, number, name
        with self._lock:
            cached: Part | None = self._cached.get(key)
            if cached is not None:
                self._cached.move_to_end(key)
                return cached
        part = read()
        with self._lock:
            if key not in self._cached:
                self._cached[key] = part
                self._bytes += part.nbytes
                while self._bytes > self._max_bytes:
                    self._bytes -= self._cached.popitem(last=False)[1].nbytes
        return part

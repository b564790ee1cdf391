"""Columns of row groups as they are cached: in as little memory as holds them, the last ones within a bound.

What is cached need not be read again. A column that counts on is a range; one whose values repeat, as the
outputs of groups do, is run-length encoded. Knows nothing of files.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = [
    "NO_RUN",
    "CachedColumn",
    "ColumnCache",
    "Integers",
    "Key",
    "RunLengths",
    "compact",
    "part",
    "places",
]

Integers = npt.NDArray[np.signedinteger[Any]]

#: Stands for null in `in_run`; runs that blocks name are not negative, and -2 - p is no run: ids of node p.
NO_RUN = -1
CACHE_BYTES = 256 << 20
#: Numbers between it and its negative are cached in 32 bits: the sum of two fits, too. Whoever adds more
#: makes them 64 bits long.
_SHORT = 1 << 30
#: And how many outputs a row speaks of, or by how much its inputs differ, in 8 or 16 bits, below these.
_FEW = (1 << 7, np.int8), (1 << 15, np.int16)
_SMALL = frozenset(("out_count", "in_step"))
#: These are run-length encoded where there are at least so many times as many rows.
_REPEATED = 3
_REPEATING = frozenset(("out_pos", "in_run"))


@dataclass(frozen=True, slots=True)
class RunLengths:
    """Rows in which values repeat: value k stands from row starts[k] to before starts[k + 1]."""

    values: Integers
    starts: npt.NDArray[np.int32]

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + self.starts.nbytes


CachedColumn = Integers | range | RunLengths
"""A column as it is cached: as a range where each value is one more than the one before it."""
Key = tuple[str, int, str]
"""(file, row group, column)."""


class ColumnCache:
    """Columns of row groups that were read last, up to `max_bytes`. Threads may share it."""

    def __init__(self, max_bytes: int = CACHE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._lock = Lock()
        self._columns: OrderedDict[Key, CachedColumn] = OrderedDict()

    def get(self, key: Key) -> CachedColumn | None:
        with self._lock:
            column = self._columns.get(key)
            if column is not None:
                self._columns.move_to_end(key)
            return column

    def cached_keys(self) -> list[Key]:
        """What is cached."""
        with self._lock:
            return list(self._columns)

    def has(self, key: Key) -> bool:
        return key in self._columns

    def put(self, key: Key, values: CachedColumn) -> None:
        with self._lock:
            if key not in self._columns:
                self._columns[key] = values
                self._bytes += _bytes(values)
                while self._bytes > self._max_bytes:
                    self._bytes -= _bytes(self._columns.popitem(last=False)[1])


def _bytes(values: CachedColumn) -> int:
    return 0 if isinstance(values, range) else values.nbytes


def compact(name: str, column: pa.ChunkedArray, bounds: tuple[int, int] | None = None) -> CachedColumn:
    """A column that was read; null is NO_RUN. `bounds` are its smallest and its largest value, if known."""
    if column.null_count:
        column = column.fill_null(NO_RUN)
    values: Any = column.to_numpy()
    if not len(values):
        return np.asarray(values, np.int64)
    smallest, largest = bounds or (int(values.min()), int(values.max()))
    kind: Any = np.int64 if largest >= _SHORT or smallest < -_SHORT else np.int32
    if name in _REPEATING:
        changes = values[1:] != values[:-1]
        runs = int(np.count_nonzero(changes)) + 1  # to say where they begin takes ten times as long
        if runs * _REPEATED <= len(values):
            starts = np.zeros(runs + 1, np.int32)
            starts[1:-1], starts[-1] = np.flatnonzero(changes) + 1, len(values)
            return RunLengths(values[starts[:-1]].astype(kind), starts)
    first, last = int(values[0]), int(values[-1])
    if last - first == len(values) - 1 and kind is np.int32 and bool(np.all(values[1:] - values[:-1] == 1)):
        return range(first, last + 1)
    if name in _SMALL:
        kind = next((small for most, small in _FEW if largest < most), kind)
    return np.asarray(values, kind)


def part(column: CachedColumn, start: int, stop: int) -> Integers:
    """The values of the rows from `start` to before `stop`. Of run lengths and ranges, no others are made."""
    if isinstance(column, range):
        return np.arange(column.start + start, column.start + stop, dtype=np.int32)
    if isinstance(column, RunLengths):
        if start >= stop:
            return column.values[:0]
        first = int(column.starts.searchsorted(start, "right")) - 1
        last = int(column.starts.searchsorted(stop, "left"))
        bounds = column.starts[first : last + 1].clip(start, stop)
        return np.repeat(column.values[first:last], np.diff(bounds))
    return column[start:stop]


def places(values: Integers, keys: Integers, side: Literal["left", "right"]) -> Integers:
    """Where ascending `keys` stand in ascending `values`.

    NumPy would make all values as wide as the few that are wanted, which takes longer than to find these.
    """
    if 0 < len(keys) < len(values) and keys.dtype.itemsize > values.dtype.itemsize:
        low, high = _LIMITS[values.dtype.itemsize]
        if low <= keys[0] and keys[-1] <= high:
            keys = keys.astype(values.dtype)
    return values.searchsorted(keys, side)


_LIMITS = {size: (-(1 << (8 * size - 1)), (1 << (8 * size - 1)) - 1) for size in (1, 2, 4, 8)}

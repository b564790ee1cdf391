"""Row groups of Parquet files of `flows`: their bounds, and their columns, read when needed and cached.

Files may stay open for readers to come. Files of a Delta table never change.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable
from itertools import pairwise
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lineage_service.store.errors import translated_read_errors
from lineage_service.tracing.columns.column_cache import (
    NO_RUN,
    CachedColumn,
    ColumnCache,
    Integers,
    Key,
    RunLengths,
    compact,
    part,
)

__all__ = ["FlowFile", "IdleFiles", "RowGroup"]

_COLUMNS = frozenset(("node", "run", "out_pos", "out_count", "in_pos", "in_step", "in_run"))
_STREAM = ("node", "run")
_MOST_OPEN = 64


class FlowFile:
    """One Parquet file, which may stay open for readers to come. Threads may share it."""

    def __init__(self, path: str, idle: IdleFiles) -> None:
        """Raises StoreUnavailableError when it is gone or damaged."""
        self.path, self._idle = path, idle
        with translated_read_errors(path):
            self.metadata = pq.read_metadata(path, memory_map=True)
        names = enumerate(self.metadata.schema.names)
        self.columns = {name: index for index, name in names if name in _COLUMNS}

    def read(self, row_group: int, columns: list[str]) -> pa.Table:
        """Raises StoreUnavailableError when it is gone or damaged."""
        opened = self._idle.take(self.path)
        with translated_read_errors(self.path):
            if opened is None:
                # Given a path, pyarrow looks for a file system first, which takes longer.
                opened = pq.ParquetFile(pa.memory_map(self.path), metadata=self.metadata, pre_buffer=False)
            table = opened.read_row_group(row_group, columns=columns, use_threads=False)
        self._idle.give_back(self.path, opened)
        return table


class IdleFiles:
    """Open files that are not being read: the last ones, each for one reader. Threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._opened: OrderedDict[str, pq.ParquetFile] = OrderedDict()

    def take(self, path: str) -> pq.ParquetFile | None:
        with self._lock:
            return self._opened.pop(path, None)

    def give_back(self, path: str, opened: pq.ParquetFile) -> None:
        with self._lock:
            self._opened[path] = opened
            if len(self._opened) > _MOST_OPEN:
                self._opened.popitem(last=False)


class RowGroup:
    """One row group. What all its rows share is known without reading it."""

    __slots__ = ("_bounds", "_cache", "_constants", "_file", "_keys", "_repeated", "number", "rows", "stream")

    def __init__(self, file: FlowFile, number: int, cache: ColumnCache) -> None:
        self._file, self.number, self._cache = file, number, cache
        group = file.metadata.row_group(number)
        self.rows: int = group.num_rows
        self._bounds: dict[str, tuple[int, int]] | None = None
        self._keys: dict[str, Key] = {}  # of the columns that are to be read
        self._constants: dict[str, int] = {}
        self._repeated: dict[str, Integers] = {}  # these as columns, in the memory of one value
        self._read_statistics(group, _STREAM)
        #: (node, run) of all its rows; None where they differ.
        self.stream = self._constants.get("node"), self._constants.get("run")

    def _read_statistics(
        self, group: pq.RowGroupMetaData, names: Iterable[str]
    ) -> dict[str, tuple[int, int]]:
        """The bounds of some columns. Those of all columns of all row groups take time to read."""
        bounds = {}
        for name in names:
            statistics = group.column(self._file.columns[name]).statistics
            if statistics is None or statistics.null_count is None:
                continue
            if statistics.null_count == self.rows:
                self._constants[name] = NO_RUN
            elif statistics.has_min_max and not statistics.null_count:
                bounds[name] = smallest, largest = int(statistics.min), int(statistics.max)
                if smallest == largest:
                    self._constants[name] = smallest
        return bounds

    @property
    def bounds(self) -> dict[str, tuple[int, int]]:
        """Column -> (smallest, largest) value, where Parquet has them; of the stream, see `stream`."""
        if self._bounds is None:
            others = [name for name in self._file.columns if name not in _STREAM]
            bounds = self._read_statistics(self._file.metadata.row_group(self.number), others)
            path, constants = self._file.path, self._constants
            self._keys = {
                name: (path, self.number, name) for name in self._file.columns if name not in constants
            }
            self._bounds = bounds  # last: it says that the rest is known
        return self._bounds

    def constant(self, name: str) -> int | None:
        """The value that the column has in every row, where that is known."""
        if self._bounds is None:
            _ = self.bounds
        return self._constants.get(name)

    def missing(self, names: Iterable[str]) -> list[str]:
        """Those columns that would have to be read."""
        if self._bounds is None:
            _ = self.bounds
        keys, has = self._keys, self._cache.has
        return [name for name in names if name in keys and not has(keys[name])]

    def column(self, name: str, start: int, stop: int) -> Integers:
        """The values of a column in some rows; null is NO_RUN. Raises StoreUnavailableError."""
        constant = self.constant(name)
        if constant is not None:
            same = self._repeated.get(name)
            if same is None:
                same = self._repeated[name] = np.broadcast_to(np.int64(constant), self.rows)
            return same[start:stop]
        return part(self.cached(name), start, stop)

    def cached(self, name: str) -> CachedColumn:
        """The same, as it is cached."""
        constant = self.constant(name)
        if constant is not None:
            return RunLengths(np.array([constant]), np.array([0, self.rows], np.int32))
        key = self._keys[name]
        column = self._cache.get(key)
        if column is None:
            column = compact(name, self._read([name]).column(0))
            self._cache.put(key, column)
        return column

    def fetch(self, names: Collection[str]) -> None:
        """Read those columns that are not at hand, all at once."""
        missing = self.missing(names)
        if missing:
            read = self._read(missing)
            for name in missing:
                self._cache.put(self._keys[name], compact(name, read.column(name)))

    def all_rows(self, names: Collection[str]) -> dict[str, Integers]:
        """These columns, of who looks at all rows once: nothing is cached. Null is NO_RUN."""
        absent = [name for name in names if self.constant(name) is None]
        read = self._read(absent) if absent else None
        return {
            name: self.column(name, 0, self.rows)
            if read is None or name not in absent
            else _plain(read, name)
            for name in names
        }

    def streams(self) -> list[tuple[tuple[int, int], int, int]]:
        """((node, run), start, stop) of the streams that stand one after the other. Reads, and caches
        nothing: all row groups are asked once."""
        names = [name for name, constant in zip(_STREAM, self.stream, strict=True) if constant is None]
        read = self._read(names)
        columns = [read.column(name).to_numpy() for name in names]
        changes = np.zeros(self.rows - 1, bool)
        for values in columns:
            changes |= values[1:] != values[:-1]
        bounds = [0, *(np.flatnonzero(changes) + 1).tolist(), self.rows]
        streams = []
        for start, stop in pairwise(bounds):
            inside = iter([int(values[start]) for values in columns])
            node, run = (next(inside) if constant is None else constant for constant in self.stream)
            streams.append(((node, run), start, stop))
        return streams

    def _read(self, names: list[str]) -> pa.Table:
        return self._file.read(self.number, names)


def _plain(read: pa.Table, name: str) -> Integers:
    column = read.column(name)
    values: Integers = (column.fill_null(NO_RUN) if column.null_count else column).to_numpy()
    return values

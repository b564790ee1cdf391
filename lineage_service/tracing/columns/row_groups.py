"""Row groups of Parquet files of `flows`: their bounds, and their columns, read when needed and cached."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

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
from lineage_service.tracing.columns.stored_files import StoredFile

__all__ = ["RowGroup"]

_STREAM = ("node", "run")
LAST = (1 << 63) - 1


class RowGroup:
    """One row group. What all its rows share is known without reading it.

    Statistics are looked at column by column: those of all row groups take longer than many a result.
    """

    __slots__ = ("_bounds", "_cache", "_constants", "_file", "_repeated", "number", "rows", "stream")

    def __init__(self, file: StoredFile, number: int, cache: ColumnCache) -> None:
        self._file, self.number, self._cache = file, number, cache
        group = file.metadata.row_group(number)
        self.rows: int = group.num_rows
        self._bounds: dict[str, tuple[int, int] | None] = {}
        self._constants: dict[str, int | None] = {}
        self._repeated: dict[str, Integers] = {}  # constants as columns, in the memory of one value
        node, run = (self._read_bounds(group, name) for name in _STREAM)
        #: (node, run) of all its rows; None where they differ.
        self.stream = _same(node), _same(run)

    def _read_bounds(self, group: pq.RowGroupMetaData, name: str) -> tuple[int, int] | None:
        statistics = group.column(self._file.columns[name]).statistics
        bounds, nulls = None, None if statistics is None else statistics.null_count
        if nulls == self.rows:
            bounds = NO_RUN, NO_RUN
        elif nulls == 0 and statistics.has_min_max:
            bounds = (
                statistics.min_raw,
                statistics.max_raw,
            )  # numbers at once; `min` makes scalars of Arrow first
        self._bounds[name] = bounds
        return bounds

    def bounds(self, name: str) -> tuple[int, int] | None:
        """(smallest, largest) value of a column, where Parquet has them; null is NO_RUN."""
        if name in self._bounds:
            return self._bounds[name]
        return self._read_bounds(self._file.metadata.row_group(self.number), name)

    def outputs_at_most(self) -> tuple[int, int]:
        """Bounds that no output of its rows is outside of. Reads nothing."""
        if "out_count" not in self._bounds:
            group = self._file.metadata.row_group(self.number)
            for name in ("out_pos", "out_count"):
                self._read_bounds(group, name)
        first, last = self._bounds["out_pos"] or (0, LAST)
        counts = self._bounds["out_count"]
        return first, LAST if counts is None else min(last + counts[1] - 1, LAST)

    def constant(self, name: str) -> int | None:
        """The value that the column has in every row, where that is known."""
        if name not in self._constants:
            self._constants[name] = _same(self.bounds(name))
        return self._constants[name]

    def missing(self, names: Iterable[str]) -> list[str]:
        """Those columns that would have to be read."""
        return [
            name for name in names if self.constant(name) is None and not self._cache.has(self._key(name))
        ]

    def _key(self, name: str) -> Key:
        return self._file.path, self.number, name

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
        key = self._key(name)
        column = self._cache.get(key)
        if column is None:
            column = compact(name, self._read([name]).column(0), self.bounds(name))
            self._cache.put(key, column)
        return column

    def fetch(self, names: Collection[str]) -> None:
        """Read those columns that are not at hand, all at once."""
        missing = self.missing(names)
        if missing:
            read = self._read(missing)
            for name in missing:
                self._cache.put(self._key(name), compact(name, read.column(name), self.bounds(name)))

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
        """((node, run), start, stop) of the streams that stand one after the other. Reads them.

        All row groups are asked once, and then many which runs they name: these are cached.
        """
        names = [name for name, constant in zip(_STREAM, self.stream, strict=True) if constant is None]
        named = self.missing(("in_run",))
        read = self._read([*names, *named])
        for name in named:
            self._cache.put(self._key(name), compact(name, read.column(name), self.bounds(name)))
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


def _same(bounds: tuple[int, int] | None) -> int | None:
    return bounds[0] if bounds is not None and bounds[0] == bounds[1] else None


def _plain(read: pa.Table, name: str) -> Integers:
    column = read.column(name)
    values: Integers = (column.fill_null(NO_RUN) if column.null_count else column).to_numpy()
    return values

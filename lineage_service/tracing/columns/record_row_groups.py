"""Row groups of the tables that say something of single records, and which records each speaks of.

The bounds that Delta keeps exclude most files: these are not opened. Those that Parquet keeps exclude most
row groups of the others. Of what is left, an index is read first: its streams, and the positions in each. So
its other columns are only read where they say something of a record that is asked for. Delta's writer may put
one batch before another, so nothing relies on the order of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lineage_service.store.tables import Bounds
from lineage_service.tracing.columns.column_cache import Integers, places
from lineage_service.tracing.columns.interval_join import joined, within
from lineage_service.tracing.columns.stored_files import IdleFiles, StoredFile

__all__ = ["RecordIndex", "RecordRowGroup", "RecordRowGroups", "integers"]

_POSITION = "pos"
#: A stream in more parts than that, in the mean, is put in order: it takes longer than to read its rows.
_MOST_PARTS = 8
#: Of a part of an index beside its positions: so many bytes of memory.
_PART_BYTES = 512
_SHORT = (1 << 31) - 1
_ANYTHING = -(1 << 63), (1 << 63) - 1
_BOUNDED = ("node", "run", _POSITION)

Stream = tuple[Any, ...]
"""The values of the columns that a stream's rows share."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of a stream side by side, whose positions do not fall. A range: each is one more than the last."""

    rows: slice
    positions: Integers | range

    def find(self, positions: Integers) -> tuple[Integers, Integers]:
        """(indices of ascending positions, the rows that speak of these)."""
        own = self.positions
        if isinstance(own, range):
            inside = within(positions, own.start, own.stop - 1)
            moved = positions[inside] + np.int64(self.rows.start - own.start)
            return np.arange(inside.start, inside.stop), moved
        if own[-1] < positions[0] or positions[-1] < own[0]:
            return _NONE, _NONE
        at = places(own, positions, "left")
        hits = np.flatnonzero(own[np.minimum(at, len(own) - 1)] == positions)
        if not len(hits):
            return _NONE, _NONE
        index, row = joined(at[hits], places(own, positions[hits], "right") - at[hits])
        return hits[index], row + self.rows.start


@dataclass(frozen=True, slots=True)
class RecordIndex:
    """Which records a row group speaks of."""

    parts: Mapping[Stream, Sequence[_Part]]
    order: Integers | None = None  # the rows in the order of the parts; None: as they stand

    @property
    def nbytes(self) -> int:
        own = 0 if self.order is None else int(self.order.nbytes)
        for parts in self.parts.values():
            arrays = (part.positions for part in parts if not isinstance(part.positions, range))
            own += _PART_BYTES * len(parts) + sum(int(array.nbytes) for array in arrays)
        return own

    def rows(self, stream: Stream) -> Iterator[slice | Integers]:
        """All rows of a stream."""
        for part in self.parts.get(stream, ()):
            yield part.rows if self.order is None else self.order[part.rows]

    def find(self, stream: Stream, positions: Integers) -> tuple[Integers, Integers]:
        """(indices of ascending positions, the rows that speak of these)."""
        indices, rows = [], []
        for part in self.parts.get(stream, ()):
            index, row = part.find(positions)
            if len(row):
                indices.append(index)
                rows.append(row)
        if not rows:
            return _NONE, _NONE
        if len(rows) == 1:
            [index], [at] = indices, rows
        else:
            index, at = np.concatenate(indices), np.concatenate(rows)
        return index, at if self.order is None else self.order[at]


class RecordRowGroup:
    """One row group. What its statistics say is known without reading it. Threads may share it."""

    __slots__ = ("_bounds", "_file", "_group", "_stream", "bytes", "number", "rows")

    def __init__(self, file: StoredFile, number: int, stream: Sequence[str]) -> None:
        """`stream`: the columns whose values a stream's rows share."""
        self._file, self.number, self._stream = file, number, stream
        self._group = file.metadata.row_group(number)
        self.rows: int = self._group.num_rows
        self.bytes: int = self._group.total_byte_size
        self._bounds: dict[str, tuple[Any, Any] | None] = {}

    @property
    def path(self) -> str:
        return self._file.path

    def bounds(self, name: str) -> tuple[Any, Any] | None:
        """(smallest, largest) value of a column, where Parquet has them."""
        if name not in self._bounds:
            statistics = self._group.column(self._file.columns[name]).statistics
            is_said = statistics is not None and statistics.has_min_max
            if not is_said:
                self._bounds[name] = None
            elif statistics.physical_type == "BYTE_ARRAY":
                self._bounds[name] = statistics.min, statistics.max
            else:  # numbers at once; `min` makes scalars of Arrow first
                self._bounds[name] = statistics.min_raw, statistics.max_raw
        return self._bounds[name]

    def may_have(self, name: str, value: Any) -> bool:
        bounds = self.bounds(name)
        return bounds is None or bool(bounds[0] <= value <= bounds[1])

    def read(self, names: Sequence[str]) -> pa.Table:
        """These columns, each in one piece. Raises StoreUnavailableError when the file is gone or damaged."""
        return self._file.read(self.number, names).combine_chunks()

    def index(self) -> RecordIndex:
        """Raises StoreUnavailableError when the file is gone or damaged."""
        shared = {name: _same(self.bounds(name)) for name in self._stream}
        differ = [name for name in self._stream if shared[name] is None]
        table = self.read([*differ, _POSITION])
        columns = {name: _codes(table, name) for name in differ}
        positions = integers(table, _POSITION)
        parts = self._parts(columns, shared, positions)
        if sum(map(len, parts.values())) <= _MOST_PARTS * len(parts):
            return RecordIndex(parts)
        order = np.lexsort((positions, *(codes for codes, _ in columns.values())))
        columns = {name: (codes[order], values) for name, (codes, values) in columns.items()}
        return RecordIndex(self._parts(columns, shared, positions[order]), order)

    def _parts(
        self,
        columns: Mapping[str, tuple[Integers, Sequence[str] | None]],
        shared: Mapping[str, Any],
        positions: Integers,
    ) -> dict[Stream, list[_Part]]:
        starts = _starts([codes for codes, _ in columns.values()], positions)
        values_of: list[Sequence[Any]] = []
        for name in self._stream:
            if name not in columns:
                values_of.append([shared[name]] * len(starts))
                continue
            codes, values = columns[name]
            at_starts = codes[starts].tolist()
            values_of.append(at_starts if values is None else [values[code] for code in at_starts])
        parts: dict[Stream, list[_Part]] = {}
        bounds = pairwise([*starts.tolist(), self.rows])
        for stream, (start, stop) in zip(zip(*values_of, strict=True), bounds, strict=True):
            part = _Part(slice(start, stop), _compact(positions[start:stop]))
            parts.setdefault(stream, []).append(part)
        return parts


class RecordRowGroups:
    """Those of all files that have rows. Threads may share it.

    A file is opened when it may hold what is asked for, by what the log of its table says of it.
    """

    def __init__(
        self,
        files: Sequence[str],
        idle: IdleFiles,
        stream: Sequence[str],
        repeated_texts: Sequence[str],
        bounds: Mapping[str, Bounds] | None = None,
    ) -> None:
        """`files` are Parquet files on this machine. `bounds`: by file, as far as they are known.

        `stream`: the columns whose values a stream's rows share, `node` and `run` among them.
        """
        self._idle, self._stream, self._repeated_texts = idle, stream, repeated_texts
        self._lock = Lock()
        of_files = bounds or {}
        self._extents = _Extents.of([(path, of_files.get(path, {}).get) for path in files], are_files=True)

    def of(self, node: int) -> list[RecordRowGroup]:
        """Those that may speak of a node. Raises StoreUnavailableError when a file is gone or damaged."""
        extents, at = self._within((node, node))
        groups: list[RecordRowGroup] = extents.holders[at].tolist()
        return groups

    def near(self, node: int, run: int, positions: Integers) -> list[RecordRowGroup]:
        """Those that may speak of records at ascending positions of a run; first those that probably do.

        Raises StoreUnavailableError when a file is gone or damaged.
        """
        extents, at = self._within((node, node), (run, run), (int(positions[0]), int(positions[-1])))
        groups: list[RecordRowGroup] = extents.holders[at].tolist()
        if len(groups) < 2:
            return groups
        runs = zip(extents.lows[1, at].tolist(), extents.highs[1, at].tolist(), strict=True)
        odds = [(run not in bounds, bounds[1] - bounds[0]) for bounds in runs]  # those of few runs hold them
        return [groups[index] for index in sorted(range(len(groups)), key=odds.__getitem__)]

    def _within(self, *asked: tuple[int, int]) -> tuple[_Extents, Integers]:
        """Those row groups that may hold values between bounds of the first of `_BOUNDED`."""
        first, last = np.array(asked, np.int64).T[:, :, np.newaxis]
        while True:
            extents = self._extents
            may_hold = (extents.lows[: len(asked)] <= last) & (extents.highs[: len(asked)] >= first)
            at = may_hold.all(axis=0).nonzero()[0]
            files = at[extents.are_files[at]]
            if not len(files):
                return extents, at
            self._open(extents, files)

    def _open(self, extents: _Extents, files: Integers) -> None:
        """Replace files by their row groups. Where another thread has replaced some, it is looked again."""
        with self._lock:
            if self._extents is extents:
                groups = [group for path in extents.holders[files] for group in self._groups_of(path)]
                opened = _Extents.of([(group, group.bounds) for group in groups], are_files=False)
                self._extents = extents.replaced(files, opened)

    def _groups_of(self, path: str) -> Iterator[RecordRowGroup]:
        file = StoredFile(path, self._idle, self._repeated_texts)
        for number in range(file.metadata.num_row_groups):
            group = RecordRowGroup(file, number, self._stream)
            if group.rows:
                yield group


class _Extents(NamedTuple):
    """Row groups, and files that were not opened, with the bounds of each side by side."""

    holders: npt.NDArray[np.object_]
    are_files: npt.NDArray[np.bool_]
    lows: Integers  # by column of `_BOUNDED`
    highs: Integers

    @classmethod
    def of(cls, parts: Sequence[tuple[object, Callable[[str], Any]]], *, are_files: bool) -> _Extents:
        """Of parts, each with what gives (smallest, largest) of a column, or None."""
        holders = np.empty(len(parts), object)
        holders[:] = [holder for holder, _ in parts]
        bounds = [[bounds_of(name) or _ANYTHING for _, bounds_of in parts] for name in _BOUNDED]
        lows, highs = np.moveaxis(np.array(bounds, np.int64).reshape(len(_BOUNDED), -1, 2), 2, 0)
        return cls(holders, np.full(len(parts), are_files), lows, highs)

    def replaced(self, indices: Integers, by: _Extents) -> _Extents:
        """Others instead of some."""
        return _Extents(
            np.concatenate((np.delete(self.holders, indices), by.holders)),
            np.concatenate((np.delete(self.are_files, indices), by.are_files)),
            np.concatenate((np.delete(self.lows, indices, 1), by.lows), 1),
            np.concatenate((np.delete(self.highs, indices, 1), by.highs), 1),
        )


def integers(table: pa.Table, name: str) -> Integers:
    """A column without nulls, in one piece."""
    values: Integers = table.column(name).chunk(0).to_numpy()
    return values


def _codes(table: pa.Table, name: str) -> tuple[Integers, Sequence[str] | None]:
    """(a number for each row, the texts that these stand for; None: the numbers are the values)."""
    column = table.column(name).chunk(0)
    if isinstance(column, pa.DictionaryArray):
        return column.indices.to_numpy(), column.dictionary.to_pylist()
    return column.to_numpy(), None


def _same(bounds: tuple[Any, Any] | None) -> Any:
    return bounds[0] if bounds is not None and bounds[0] == bounds[1] else None


def _starts(columns: Sequence[Integers], positions: Integers) -> Integers:
    """Where rows begin that are of another stream than the row before, or of a smaller position."""
    is_new = positions[1:] < positions[:-1]
    for column in columns:
        is_new |= column[1:] != column[:-1]
    return np.concatenate(([0], np.flatnonzero(is_new) + 1))


def _compact(positions: Integers) -> Integers | range:
    """Positions that do not fall, in little memory."""
    first, last = int(positions[0]), int(positions[-1])
    if last - first == len(positions) - 1 and bool((positions[1:] != positions[:-1]).all()):
        return range(first, last + 1)
    return positions.astype(np.int32 if last <= _SHORT else np.int64)  # a copy, without the rest


_NONE = np.zeros(0, np.int64)

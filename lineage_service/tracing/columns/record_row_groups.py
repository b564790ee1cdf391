"""Row groups of the tables that say something of single records, and which records each speaks of.

The bounds that Parquet keeps exclude most row groups. Of another, an index is read first: its streams, and
the positions in each. So its other columns are only read where they say something of a record that is asked
for. Delta's writer may put one batch before another, so nothing relies on the order of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

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
    """Those of all files that have rows. Threads may share it."""

    def __init__(
        self, files: Sequence[str], idle: IdleFiles, stream: Sequence[str], repeated_texts: Sequence[str]
    ) -> None:
        """`stream`: the columns whose values a stream's rows share, `node` and `run` among them."""
        self._files, self._idle, self._stream = files, idle, stream
        self._repeated_texts = repeated_texts
        self._of_node: dict[int, Integers] = {}

    def of(self, node: int) -> list[RecordRowGroup]:
        """Those that may speak of a node. Raises StoreUnavailableError when a file is gone or damaged."""
        groups = self._opened.groups
        return [groups[index] for index in self._at(node).tolist()]

    def near(self, node: int, run: int, positions: Integers) -> list[RecordRowGroup]:
        """Those that may speak of records at ascending positions of a run; first those that probably do.

        Raises StoreUnavailableError when a file is gone or damaged.
        """
        of_node, opened = self._at(node), self._opened
        first_run, last_run = (bounds[of_node] for bounds in opened.runs)
        first, last = (bounds[of_node] for bounds in opened.positions)
        may_hold = (first_run <= run) & (run <= last_run) & (first <= positions[-1]) & (positions[0] <= last)
        has_run = (first_run == run) | (last_run == run)
        at = (*of_node[may_hold & has_run].tolist(), *of_node[may_hold & ~has_run].tolist())
        return [opened.groups[index] for index in at]

    def _at(self, node: int) -> Integers:
        at = self._of_node.get(node)
        if at is None:
            first, last = self._opened.nodes
            at = self._of_node[node] = np.flatnonzero((first <= node) & (node <= last))
        return at

    @cached_property
    def _opened(self) -> _Opened:
        groups = []
        for path in self._files:
            file = StoredFile(path, self._idle, self._repeated_texts)
            for number in range(file.metadata.num_row_groups):
                group = RecordRowGroup(file, number, self._stream)
                if group.rows:
                    groups.append(group)
        first, last = _bounds(groups, "run")
        order = np.argsort(last.astype(float) - first, kind="stable")
        groups = [groups[index] for index in order.tolist()]
        return _Opened(
            groups, _bounds(groups, "node"), (first[order], last[order]), _bounds(groups, _POSITION)
        )


class _Opened(NamedTuple):
    """Row groups, first those of few runs: they hold what they may. With the bounds of each, side by side."""

    groups: Sequence[RecordRowGroup]
    nodes: tuple[Integers, Integers]
    runs: tuple[Integers, Integers]
    positions: tuple[Integers, Integers]


def _bounds(groups: Sequence[RecordRowGroup], name: str) -> tuple[Integers, Integers]:
    """(smallest, largest) values of a column in each."""
    low, high = np.array([group.bounds(name) or _ANYTHING for group in groups], np.int64).reshape(-1, 2).T
    return low, high


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

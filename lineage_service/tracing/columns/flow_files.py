"""The rows of `flows` of one application, read by row group: only those that a step needs.

A stream, all rows of one (node, run), stands in each file nearly in the order (out_pos, in_pos): Delta's
writer may put a batch before another. So the smallest and largest values that Parquet keeps of each row group
say which ones can hold a position, and what is read falls into few parts that are in order. Row groups become
NumPy arrays, the last ones kept within a bound. Files of a Delta table never change.
"""

from __future__ import annotations

import os
from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from lineage_service.store.errors import reading_told
from lineage_service.tracing.columns.column_cache import (
    NO_RUN,
    CachedColumn,
    ColumnCache,
    Integers,
    Key,
    Runs,
    compact,
    part,
    places,
)

__all__ = ["NO_RUN", "ColumnCache", "FlowFiles", "Integers", "Slice"]

_COLUMNS = frozenset(("node", "run", "out_pos", "out_count", "in_pos", "in_step", "in_run"))
_STREAM = ("node", "run")
_AT_ONCE = min(4, os.cpu_count() or 1)
_MOST_OPEN = 64


class _File:
    """One Parquet file, which may stay open for readers to come. Threads may share it."""

    def __init__(self, path: str, idle: _Idle) -> None:
        """Raises StoreUnavailableError when it is gone or damaged."""
        self.path, self._idle = path, idle
        with reading_told(path):
            self.metadata = pq.read_metadata(path, memory_map=True)
        names = enumerate(self.metadata.schema.names)
        self.columns = {name: index for index, name in names if name in _COLUMNS}

    def read(self, row_group: int, columns: list[str]) -> pa.Table:
        """Raises StoreUnavailableError when it is gone or damaged."""
        opened = self._idle.take(self.path)
        with reading_told(self.path):
            if opened is None:
                # Given a path, pyarrow looks for a file system first, which takes longer.
                opened = pq.ParquetFile(pa.memory_map(self.path), metadata=self.metadata, pre_buffer=False)
            table = opened.read_row_group(row_group, columns=columns, use_threads=False)
        self._idle.give(self.path, opened)
        return table


class _Idle:
    """Open files that nobody reads now: the last ones, each for one reader. Threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._opened: OrderedDict[str, pq.ParquetFile] = OrderedDict()

    def take(self, path: str) -> pq.ParquetFile | None:
        with self._lock:
            return self._opened.pop(path, None)

    def give(self, path: str, opened: pq.ParquetFile) -> None:
        with self._lock:
            self._opened[path] = opened
            if len(self._opened) > _MOST_OPEN:
                self._opened.popitem(last=False)


class _RowGroup:
    """One row group. What all its rows share is known without reading it."""

    __slots__ = ("_bounds", "_cache", "_constants", "_file", "_keys", "_repeated", "number", "rows", "stream")

    def __init__(self, file: _File, number: int, cache: ColumnCache) -> None:
        self._file, self.number, self._cache = file, number, cache
        group = file.metadata.row_group(number)
        self.rows: int = group.num_rows
        self._bounds: dict[str, tuple[int, int]] | None = None
        self._keys: dict[str, Key] = {}  # of the columns that are to be read
        self._constants: dict[str, int] = {}
        self._repeated: dict[str, Integers] = {}  # these as columns, in the memory of one value
        self._tell(group, _STREAM)
        #: (node, run) of all its rows; None where they differ.
        self.stream = self._constants.get("node"), self._constants.get("run")

    def _tell(self, group: pq.RowGroupMetaData, names: Iterable[str]) -> dict[str, tuple[int, int]]:
        """What Parquet tells of some columns: of all of them, for all row groups, it takes time."""
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
        """Column -> (smallest, largest) value, where Parquet tells; of the stream, see `stream`."""
        if self._bounds is None:
            others = [name for name in self._file.columns if name not in _STREAM]
            bounds = self._tell(self._file.metadata.row_group(self.number), others)
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
        return part(self.kept(name), start, stop)

    def kept(self, name: str) -> CachedColumn:
        """The same, as it is kept."""
        constant = self.constant(name)
        if constant is not None:
            return Runs(np.array([constant]), np.array([0, self.rows], np.int32))
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

    def streams(self) -> list[tuple[tuple[int, int], int, int]]:
        """((node, run), start, stop) of the streams that stand one after the other. Reads, and keeps nothing:
        all row groups are asked once."""
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


@dataclass(frozen=True)
class Slice:
    """Rows of one stream that stand side by side in one row group."""

    group: _RowGroup
    start: int
    stop: int

    @property
    def rows(self) -> int:
        return self.stop - self.start

    @property
    def is_whole(self) -> bool:
        """Nothing else is in the row group."""
        return self.rows == self.group.rows

    def column(self, name: str) -> Integers:
        """out_pos, out_count, in_pos, in_step, or in_run with NO_RUN for null."""
        return self.group.column(name, self.start, self.stop)

    def fetch(self, names: Collection[str]) -> None:
        """Read those columns that are not at hand, all at once. What is looked at then need not be read."""
        self.group.fetch(names)

    def constant(self, name: str) -> int | None:
        """The value that the column has in every row, if any. Reads it where others share the row group."""
        if self.is_whole:
            return self.group.constant(name)
        if name not in self._constants:
            values = self.column(name)
            self._constants[name] = int(values[0]) if bool(np.all(values == values[0])) else None
        return self._constants[name]

    @cached_property
    def _constants(self) -> dict[str, int | None]:
        return {}

    def _bounds(self, name: str) -> tuple[int, int]:
        if self.is_whole and name in self.group.bounds:
            return self.group.bounds[name]
        values = self.column(name)
        return int(values.min()), int(values.max())

    @cached_property
    def outputs(self) -> tuple[int, int]:
        """Bounds of the outputs that its rows name. Reads them where others share the row group."""
        first, last = self._bounds("out_pos")
        return first, min(last + self._bounds("out_count")[1] - 1, ANYWHERE[1])

    def at(self, name: str, rows: slice | npt.NDArray[Any]) -> Integers:
        """The values of a column in some rows."""
        kept = self.group.kept(name)
        if isinstance(kept, np.ndarray):
            return kept[self.start : self.stop][rows]
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(self.rows)
            return self.group.column(name, self.start + start, self.start + max(start, stop))
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        if isinstance(kept, range):
            return (rows + (kept.start + self.start)).astype(np.int32)
        return kept.values[kept.starts.searchsorted(rows + np.int32(self.start), "right") - 1]

    def rows_with(self, outputs: Integers) -> tuple[Integers, Integers]:
        """(first row, number of rows) that begin with each of ascending outputs, of a part in order."""
        kept = self.group.kept("out_pos")
        if not isinstance(kept, Runs):
            return _standing(kept, self.start, self.stop, outputs)
        first, last = self._in_runs
        values, starts = kept.values[first:last], kept.starts[first : last + 1]
        if not self.is_whole:
            starts = starts - np.int32(self.start)
            starts[0], starts[-1] = 0, self.rows
        left = starts[values.searchsorted(outputs, "left")]
        return left, starts[values.searchsorted(outputs, "right")] - left

    def rows_from(self, inputs: Integers) -> tuple[Integers, Integers]:
        """(first row, number of rows) that name each of ascending inputs first, where `inputs_ascend`."""
        kept = self.group.kept("in_pos")
        if isinstance(kept, Runs):  # one run, of a column that is constant
            return _standing(self.column("in_pos"), 0, self.rows, inputs)
        return _standing(kept, self.start, self.stop, inputs)

    @cached_property
    def _in_runs(self) -> tuple[int, int]:
        """From which run of `out_pos` to before which one its rows stand, where these are kept as runs."""
        kept = self.group.kept("out_pos")
        assert isinstance(kept, Runs)
        first = int(kept.starts.searchsorted(self.start, "right")) - 1
        return first, int(kept.starts.searchsorted(self.stop, "left"))

    @cached_property
    def reach(self) -> tuple[int, int, int, int]:
        """Bounds of its outputs, and of its inputs, as far as they are known without reading."""
        bounds, constant = self.group.bounds, self.group.constant
        first, last = bounds.get("out_pos", ANYWHERE)
        last += bounds.get("out_count", ANYWHERE)[1] - 1
        first_input, last_input = bounds.get("in_pos", ANYWHERE)
        if constant("in_step") != 0 and constant("out_count") != 1:
            last_input = ANYWHERE[1]  # a row may name inputs beyond the one that it begins with
        return first, min(last, ANYWHERE[1]), first_input, last_input

    def is_at_hand(self, names: Collection[str]) -> bool:
        """These columns need not be read."""
        return not self.group.missing(names)

    @cached_property
    def parts(self) -> tuple[Slice, ...]:
        """The same rows in parts in each of which `out_pos` does not fall. Reads them."""
        kept = self.group.kept("out_pos")
        if isinstance(kept, Runs):
            first, last = self._in_runs
            values = kept.values[first:last]
            falls: Integers = kept.starts[first + 1 : last][values[1:] < values[:-1]] - self.start
        else:
            outputs = self.column("out_pos")
            falls = np.flatnonzero(outputs[1:] < outputs[:-1]) + 1
        if not len(falls):
            return (self,)
        bounds = [0, *falls.tolist(), self.rows]
        return tuple(
            Slice(self.group, self.start + start, self.start + stop) for start, stop in pairwise(bounds)
        )

    def rows_of(self, writer: int) -> slice | Integers | None:
        """The rows that name `writer` in `in_run`; None where there are none."""
        constant = self.constant("in_run")
        if constant is not None:
            return slice(0, self.rows) if constant == writer else None
        return self._by_writer.get(writer)

    @cached_property
    def _by_writer(self) -> dict[int, Integers]:
        writers = self.column("in_run")
        order = np.argsort(writers, kind="stable")
        ordered = writers[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
        parts = np.split(order.astype(np.int32), starts[1:])
        return dict(zip(ordered[starts].tolist(), parts, strict=True))

    @property
    def writers(self) -> tuple[int, ...]:
        """The runs that `in_run` names, NO_RUN among them for null."""
        constant = self.constant("in_run")
        return (constant,) if constant is not None else tuple(self._by_writer)

    @cached_property
    def inputs_ascend(self) -> bool:
        """No row names an earlier input than the one before it. Reads them."""
        inputs = self.column("in_pos")
        return bool(np.all(inputs[1:] >= inputs[:-1]))

    @cached_property
    def inputs(self) -> tuple[int, int]:
        """(smallest, largest) `in_pos`. Reads them where others share the row group."""
        return self._bounds("in_pos")


def _standing(kept: Integers | range, start: int, stop: int, keys: Integers) -> tuple[Integers, Integers]:
    """(first row, number of rows) of ascending values among those from row `start` to before `stop`."""
    if isinstance(kept, range):
        row = keys - (kept.start + start)
        is_there = (row >= 0) & (row < stop - start)
        return np.where(is_there, row, 0), is_there.astype(np.int64)
    values = kept[start:stop]
    left = places(values, keys, "left")
    return left, places(values, keys, "right") - left


#: Where there are no bounds.
ANYWHERE = 0, (1 << 63) - 1


class FlowFiles:
    """All rows of `flows` of one application, by stream. Threads may share it."""

    def __init__(self, files: Sequence[str], cache: ColumnCache | None = None) -> None:
        """`files` are Parquet files on this machine. Raises StoreUnavailableError."""
        cache, idle = cache or ColumnCache(), _Idle()
        self._lock = Lock()
        self._whole: dict[tuple[int, int], list[_RowGroup]] = defaultdict(list)
        self._mixed: list[_RowGroup] = []
        for path in files:
            file = _File(path, idle)
            for number in range(file.metadata.num_row_groups):
                group = _RowGroup(file, number, cache)
                node, run = group.stream
                if node is not None and run is not None:
                    self._whole[node, run].append(group)
                elif group.rows:
                    self._mixed.append(group)
        self._slices: dict[tuple[int, int], tuple[Slice, ...]] | None = None
        self._runs: dict[int, list[int]] = defaultdict(list)
        self._outputs: dict[tuple[int, int], int] = {}

    def slices(self, node: int, run: int) -> tuple[Slice, ...]:
        """All rows of a stream, in no order."""
        return self._all().get((node, run), ())

    def near(
        self,
        node: int,
        run: int,
        outputs: tuple[int, int] | None = None,
        inputs: tuple[int, int] | None = None,
    ) -> list[Slice]:
        """Those rows of a stream that may lead from or to something between such bounds. Reads nothing."""
        first_output, last_output = outputs or ANYWHERE
        first_input, last_input = inputs or ANYWHERE
        near = []
        for rows in self.slices(node, run):
            low, high, lowest, highest = rows.reach
            if (
                low <= last_output
                and first_output <= high
                and lowest <= last_input
                and first_input <= highest
            ):
                near.append(rows)
        return near

    def runs(self, node: int) -> Sequence[int]:
        """The runs that have rows of `node`."""
        self._all()
        return self._runs.get(node, ())

    def writers(self, nodes: Iterable[int]) -> Iterator[tuple[int, int]]:
        """(run that read, run that wrote) of the flows of these nodes."""
        for node in nodes:
            for run in self.runs(node):
                for rows in self.slices(node, run):
                    yield from ((run, writer) for writer in rows.writers if writer > NO_RUN)

    def outputs(self, node: int, run: int) -> int:
        """How many outputs the rows of a stream speak of: the last position, and one."""
        with self._lock:
            outputs = self._outputs.get((node, run))
        if outputs is None:
            slices = self.slices(node, run)
            at_least = max((rows.group.bounds["out_pos"][1] for rows in slices if rows.is_whole), default=0)
            outputs = max(
                (
                    int((rows.column("out_pos") + rows.column("out_count")).max())
                    for rows in slices
                    if rows.outputs[1] >= at_least
                ),
                default=0,
            )
            with self._lock:
                self._outputs[node, run] = outputs
        return outputs

    def _all(self) -> dict[tuple[int, int], tuple[Slice, ...]]:
        """Row groups that several streams share are looked into once, the first time."""
        with self._lock:
            if self._slices is None:
                slices: dict[tuple[int, int], list[Slice]] = defaultdict(list)
                for key, groups in self._whole.items():
                    slices[key] = [Slice(group, 0, group.rows) for group in groups]
                with ThreadPoolExecutor(_AT_ONCE) as pool:
                    streams = pool.map(_RowGroup.streams, self._mixed)
                    for group, inside in zip(self._mixed, streams, strict=True):
                        for key, start, stop in inside:
                            slices[key].append(Slice(group, start, stop))
                for node, run in slices:
                    self._runs[node].append(run)
                self._slices = {key: tuple(of_stream) for key, of_stream in slices.items()}
            return self._slices

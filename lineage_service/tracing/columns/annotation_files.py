"""What an application says of single outputs beside flows: which input alone decided one, and digests.

Rows of `annotations` are (node, run, relation, pos, value), sorted so in each file. Row groups are chosen by
the bounds that Parquet keeps of each. The last ones read are cached within a bound. Files of a Delta table
never change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from lineage_service.store.errors import translated_read_errors
from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.row_group_cache import RowGroupCache

__all__ = ["AnnotationCache", "AnnotationFiles"]

_BOUNDED = ("node", "run", "pos")
_COLUMNS = [*_BOUNDED, "relation", "value"]
_CACHE_BYTES = 128 << 20
_ANYTHING = -(1 << 63), (1 << 63) - 1

_Stream = tuple[int, int, str]
"""(node, run, relation)."""
_Marks = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Rows:
    """A row group. Rows of a stream stand side by side, in the order of their positions."""

    streams: Mapping[_Stream, slice]
    positions: Integers
    values: Integers

    @property
    def bytes(self) -> int:
        return int(self.positions.nbytes + self.values.nbytes)


class AnnotationCache(RowGroupCache[_Rows]):
    """Row groups of `annotations`. Threads may share it."""

    def __init__(self, max_bytes: int = _CACHE_BYTES) -> None:
        super().__init__(max_bytes)


@dataclass(frozen=True, slots=True)
class _RowGroup:
    path: str
    metadata: pq.FileMetaData
    number: int
    bounds: Mapping[str, tuple[int, int]]

    def may_hold(self, name: str, low: int, high: int) -> bool:
        smallest, largest = self.bounds.get(name, _ANYTHING)
        return smallest <= high and low <= largest

    def runs(self) -> int:
        """How far the numbers of its runs are apart."""
        smallest, largest = self.bounds.get("run", _ANYTHING)
        return largest - smallest

    def read(self) -> _Rows:
        """Raises StoreUnavailableError when the file is gone or damaged."""
        with (
            translated_read_errors(self.path),
            pa.memory_map(self.path) as opened,
            pq.ParquetFile(opened, metadata=self.metadata, read_dictionary=["relation"]) as file,
        ):
            table = file.read_row_group(self.number, columns=_COLUMNS, use_threads=False).combine_chunks()
        node, run, positions, values = (
            np.asarray(table.column(name).to_numpy(), np.int64) for name in (*_BOUNDED, "value")
        )
        relation = table.column("relation").chunk(0)
        codes, names = relation.indices.to_numpy(), relation.dictionary.to_pylist()
        starts = _starts(node, run, codes)
        streams = set(zip(node[starts].tolist(), run[starts].tolist(), codes[starts].tolist(), strict=True))
        if len(streams) < len(starts) or not _ascend_between(starts, positions):
            # Rarely: sorting takes longer than reading.
            order = np.lexsort((positions, codes, run, node))
            node, run, codes = node[order], run[order], codes[order]
            positions, values = positions[order], values[order]
            starts = _starts(node, run, codes)
        return _Rows(
            {
                (int(node[start]), int(run[start]), names[int(codes[start])]): slice(start, stop)
                for start, stop in pairwise([*starts.tolist(), len(node)])
            },
            positions,
            values,
        )


class AnnotationFiles:
    """All rows of `annotations` of one application. Threads may share it."""

    def __init__(self, files: Sequence[str], cache: AnnotationCache | None = None) -> None:
        """`files` are Parquet files on this machine."""
        self._files = files
        self._cache = cache or AnnotationCache()
        self._of_node: dict[int, Sequence[_RowGroup]] = {}

    def at(self, node: int, run: int, relation: str, positions: Integers) -> tuple[_Marks, Integers]:
        """(which of ascending positions have a value, the values of these).

        Raises StoreUnavailableError when a file is gone or damaged.
        """
        is_known = np.zeros(len(positions), bool)
        values = np.zeros(len(positions), np.int64)
        for rows, stream in self._streams(node, run, relation, positions):
            at_positions = rows.positions[stream]
            places = at_positions.searchsorted(positions)
            places[places == len(at_positions)] = 0
            is_there = at_positions[places] == positions
            is_known |= is_there
            values[is_there] = rows.values[stream][places[is_there]]
            if is_known.all():
                break  # of each position one value is said
        return is_known, values[is_known]

    def every(self, node: int, relation: str) -> Iterator[tuple[int, Integers]]:
        """(run, values) of all records of a node, piece by piece. Raises StoreUnavailableError."""
        for group in self._groups_of(node):
            rows = self._rows(group)
            for (of_node, run, of_relation), stream in rows.streams.items():
                if of_node == node and of_relation == relation:
                    yield run, rows.values[stream]

    def _streams(
        self, node: int, run: int, relation: str, positions: Integers
    ) -> Iterator[tuple[_Rows, slice]]:
        if not len(positions):
            return
        low, high = int(positions[0]), int(positions[-1])
        for group in self._groups_of(node):
            if group.may_hold("run", run, run) and group.may_hold("pos", low, high):
                rows = self._rows(group)
                stream = rows.streams.get((node, run, relation))
                if stream is not None:
                    yield rows, stream

    def _rows(self, group: _RowGroup) -> _Rows:
        return self._cache.rows(group.path, group.number, group.read)

    def _groups_of(self, node: int) -> Sequence[_RowGroup]:
        """The row groups that may hold rows of a node, first those of few runs: they hold what they may."""
        groups = self._of_node.get(node)
        if groups is None:
            groups = self._of_node[node] = sorted(
                (group for group in self._groups if group.may_hold("node", node, node)), key=_RowGroup.runs
            )
        return groups

    @cached_property
    def _groups(self) -> list[_RowGroup]:
        return [group for path in self._files for group in _row_groups(path)]


def _row_groups(path: str) -> Iterator[_RowGroup]:
    with translated_read_errors(path):
        metadata = pq.read_metadata(path, memory_map=True)
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        if not group.num_rows:
            continue
        bounds = {}
        for index in range(group.num_columns):
            column = group.column(index)
            statistics = column.statistics
            if column.path_in_schema in _BOUNDED and statistics is not None and statistics.has_min_max:
                bounds[column.path_in_schema] = int(statistics.min), int(statistics.max)
        yield _RowGroup(path, metadata, number, bounds)


def _starts(*columns: npt.NDArray[np.integer[Any]]) -> Integers:
    """Where rows begin that differ from the row before in any of these columns."""
    is_new = np.ones(len(columns[0]), bool)
    is_new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return np.flatnonzero(is_new)


def _ascend_between(starts: Integers, positions: Integers) -> bool:
    """Does each position lie behind the one before it, but at the starts?"""
    is_behind = np.ones(len(positions), bool)
    is_behind[1:] = positions[1:] > positions[:-1]
    is_behind[starts] = True
    return bool(is_behind.all())

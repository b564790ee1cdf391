"""The keys and values of single records, from the rows of `records` of one application.

Row groups are chosen as those of `flow_files` are: by the bounds that Parquet keeps of each, read once. Small
ones are read here and the last ones are cached, within a bound; what holds much text is left to DuckDB, which
decodes a piece at a time. It is asked for the files that can hold something, not for all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from lineage_service.store.errors import translated_read_errors
from lineage_service.tracing.columns.row_group_cache import RowGroupCache

__all__ = ["RecordTexts", "TextCache"]

_BOUNDED = ("node", "run", "pos")
_COLUMNS = [*_BOUNDED, "kind", "type", "text"]
_CACHE_BYTES = 128 << 20
#: Row groups with more bytes than that are not read whole.
_SMALL_BYTES = 2 << 20


class RecordText(NamedTuple):
    """A key or a value of one record."""

    run: int
    position: int
    kind: str
    type: str
    text: str


Positions = npt.NDArray[np.int64]
Bounds = tuple[int, int]
_ANYTHING: Bounds = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class _Rows:
    """A row group in the order of (node, run, pos)."""

    node: Positions
    run: Positions
    pos: Positions
    texts: pa.Table

    @property
    def bytes(self) -> int:
        return int(self.node.nbytes + self.run.nbytes + self.pos.nbytes + self.texts.nbytes)

    def of(self, node: int, run: int, positions: Positions) -> Iterator[RecordText]:
        at = _between(self.node, node, slice(0, len(self.node)))
        at = _between(self.run, run, at)
        at_positions = self.pos[at]
        left = at.start + np.searchsorted(at_positions, positions, "left")
        right = at.start + np.searchsorted(at_positions, positions, "right")
        hit = np.flatnonzero(right > left)
        rows = [row for start, stop in zip(left[hit], right[hit], strict=True) for row in range(start, stop)]
        for row, text in zip(rows, self.texts.take(rows).to_pylist() if rows else (), strict=True):
            yield RecordText(run, int(self.pos[row]), text["kind"], text["type"], text["text"])


def _between(ascending: Positions, value: int, at: slice) -> slice:
    values = ascending[at]
    left, right = np.searchsorted(values, value, "left"), np.searchsorted(values, value, "right")
    return slice(at.start + int(left), at.start + int(right))


class TextCache(RowGroupCache[_Rows]):
    """Small row groups of `records`. Threads may share it."""

    def __init__(self, max_bytes: int = _CACHE_BYTES) -> None:
        super().__init__(max_bytes)


@dataclass(frozen=True, slots=True)
class _RowGroup:
    file: str
    metadata: pq.FileMetaData
    number: int
    bounds: Mapping[str, Bounds]
    is_small: bool

    def may_hold(self, name: str, low: int, high: int) -> bool:
        smallest, largest = self.bounds.get(name, _ANYTHING)
        return smallest <= high and low <= largest

    def read(self) -> _Rows:
        """Raises StoreUnavailableError when the file is gone or damaged."""
        with (
            translated_read_errors(self.file),
            pa.memory_map(self.file) as opened,
            pq.ParquetFile(opened, metadata=self.metadata) as file,
        ):
            table = file.read_row_group(self.number, columns=_COLUMNS, use_threads=False)
        node, run, pos = (np.asarray(table.column(name).to_numpy(), np.int64) for name in _BOUNDED)
        order = np.lexsort((pos, run, node))
        texts = table.select(["kind", "type", "text"])
        if bool(np.all(order[1:] > order[:-1])):
            return _Rows(node, run, pos, texts)
        return _Rows(node[order], run[order], pos[order], texts.take(order))


class RecordTexts:
    """All rows of `records` of one application. Threads may share it."""

    def __init__(self, files: Sequence[str], cache: TextCache | None = None) -> None:
        """`files` are Parquet files on this machine."""
        self._files = files
        self._cache = cache or TextCache()

    @cached_property
    def _groups(self) -> list[_RowGroup]:
        return [group for file in self._files for group in _row_groups(file)]

    def of(
        self,
        database: duckdb.DuckDBPyConnection,
        node: int,
        offsets_of: Mapping[int, Collection[int]],
        kinds: Collection[str],
    ) -> list[RecordText]:
        """Of the records of a node at positions by run. What must be searched, `database` searches.

        Raises StoreUnavailableError when a file is gone or damaged.
        """
        texts: list[RecordText] = []
        large: dict[str, None] = {}
        at_node = [group for group in self._groups if group.may_hold("node", node, node)]
        for run, offsets in offsets_of.items():
            positions = np.array(sorted(set(offsets)), np.int64)
            for group in at_node:
                if not group.may_hold("run", run, run):
                    continue
                if not group.may_hold("pos", int(positions[0]), int(positions[-1])):
                    continue
                if group.is_small:
                    texts += self._rows(group).of(node, run, positions)
                else:
                    large[group.file] = None
        if large:
            texts += _searched(database, list(large), node, offsets_of, kinds)
        return [text for text in texts if text.kind in kinds]

    def _rows(self, group: _RowGroup) -> _Rows:
        return self._cache.rows(group.file, group.number, group.read)


def _row_groups(file: str) -> Iterator[_RowGroup]:
    with translated_read_errors(file):
        metadata = pq.read_metadata(file, memory_map=True)
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        bounds = {}
        for index in range(group.num_columns):
            column = group.column(index)
            statistics = column.statistics
            if column.path_in_schema in _BOUNDED and statistics is not None and statistics.has_min_max:
                bounds[column.path_in_schema] = statistics.min_raw, statistics.max_raw
        yield _RowGroup(file, metadata, number, bounds, group.total_byte_size <= _SMALL_BYTES)


def _searched(
    database: duckdb.DuckDBPyConnection,
    files: list[str],
    node: int,
    offsets_of: Mapping[int, Collection[int]],
    kinds: Collection[str],
) -> list[RecordText]:
    places = [(run, offset) for run, offsets in offsets_of.items() for offset in offsets]
    rows = database.execute(
        "SELECT records.run, records.pos, kind, type, text "
        "FROM read_parquet($files, hive_partitioning = false) AS records SEMI JOIN "
        "(SELECT unnest($runs) AS run, unnest($offsets) AS pos) AS shown "
        "ON records.run = shown.run AND records.pos = shown.pos "
        "WHERE records.node = $node AND list_contains($kinds, kind)",
        {
            "files": files,
            "runs": [run for run, _ in places],
            "offsets": [offset for _, offset in places],
            "node": node,
            "kinds": list(kinds),
        },
    ).fetchall()
    return [RecordText(*row) for row in rows]

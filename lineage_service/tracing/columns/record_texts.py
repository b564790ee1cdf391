"""The keys and values of single records, from the rows of `records` of one application.

Row groups are chosen by the bounds that Parquet keeps of each, and by an index of the records in each. Small
ones are read here and the last ones are cached, within a bound; what holds much text is left to DuckDB, which
decodes a piece at a time. It is asked for the files that can hold something, not for all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import duckdb
import numpy as np
import pyarrow as pa

from lineage_service.store.tables import Bounds
from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.record_row_groups import (
    RecordIndex,
    RecordRowGroup,
    RecordRowGroups,
)
from lineage_service.tracing.columns.row_group_cache import RowGroupCache
from lineage_service.tracing.columns.stored_files import IdleFiles

__all__ = ["RecordTexts", "TextCache"]

_STREAM = ("node", "run")
_REPEATED = ("kind", "type")
_TEXTS = (*_REPEATED, "text")
_CACHE_BYTES = 128 << 20
#: Row groups with more bytes than that are not read whole.
_SMALL_BYTES = 2 << 20


class _Searchable(Protocol):
    """A connection or a cursor of DuckDB."""

    def execute(self, query: str, parameters: object = ...) -> duckdb.DuckDBPyConnection: ...


class RecordText(NamedTuple):
    """A key or a value of one record."""

    run: int
    position: int
    kind: str
    type: str
    text: str


class TextCache(RowGroupCache):
    """Small row groups of `records`. Threads may share it."""

    def __init__(self, max_bytes: int = _CACHE_BYTES) -> None:
        super().__init__(max_bytes)


class RecordTexts:
    """All rows of `records` of one application. Threads may share it."""

    def __init__(
        self,
        files: Sequence[str],
        cache: TextCache | None = None,
        idle: IdleFiles | None = None,
        bounds: Mapping[str, Bounds] | None = None,
    ) -> None:
        """`files` are Parquet files on this machine. `bounds`: by file, as far as they are known."""
        self._cache = cache or TextCache()
        self._groups = RecordRowGroups(files, idle or IdleFiles(), _STREAM, _REPEATED, bounds)

    def of(
        self,
        database: _Searchable,
        node: int,
        offsets_of: Mapping[int, Collection[int]],
        kinds: Collection[str],
    ) -> list[RecordText]:
        """Of the records of a node at positions by run. What must be searched, `database` searches.

        `kinds` should not name any that the node has nothing of: once each record has one of each, no more is
        read. Raises StoreUnavailableError when a file is gone or damaged.
        """
        texts: list[RecordText] = []
        large: dict[str, None] = {}
        for run, offsets in offsets_of.items():
            positions = np.array(sorted(set(offsets)), np.int64)
            of_run: dict[tuple[int, str], RecordText] = {}
            for group in self._groups.near(node, run, positions):
                if group.bytes <= _SMALL_BYTES:
                    of_group = self._of(group, node, run, positions)
                    of_run |= {(text.position, text.kind): text for text in of_group if text.kind in kinds}
                    if len(of_run) == len(positions) * len(kinds):
                        break
                else:
                    large[group.path] = None
            texts += of_run.values()
        if large:
            texts += _searched(database, list(large), node, offsets_of, kinds)
        return texts

    def _of(self, group: RecordRowGroup, node: int, run: int, positions: Integers) -> Iterator[RecordText]:
        indices, rows = self._index(group).find((node, run), positions)
        if len(rows):
            texts = self._texts(group).take(rows).to_pylist()
            for position, text in zip(positions[indices].tolist(), texts, strict=True):
                yield RecordText(run, position, text["kind"], text["type"], text["text"])

    def _index(self, group: RecordRowGroup) -> RecordIndex:
        return self._cache.part(group.path, group.number, "index", group.index)

    def _texts(self, group: RecordRowGroup) -> pa.Table:
        return self._cache.part(group.path, group.number, "texts", lambda: group.read(_TEXTS))


def _searched(
    database: _Searchable,
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

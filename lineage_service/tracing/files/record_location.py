"""Between records and physical rows: which row of which file a source or sink record is, and back.

Looks only at what it needs of a file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import duckdb

from lineage_service.conditions.filters import Where
from lineage_service.lineage import Direction, SourceRow
from lineage_service.tracing.files.decompression import Check, unlimited
from lineage_service.tracing.files.file_parts import ORC, PARQUET, TEXT, format_of, parts_of, paths_of
from lineage_service.tracing.files.file_rows import FileRows
from lineage_service.tracing.files.file_systems import FileSystems, is_local
from lineage_service.tracing.files.partition_states import as_it_was, sizes_of
from lineage_service.tracing.files.row_columns import ColumnRequest
from lineage_service.tracing.files.row_finder import RowFinder
from lineage_service.tracing.files.row_formats import row_format_named, row_format_of
from lineage_service.tracing.files.row_indexes import RowIndexes
from lineage_service.tracing.files.row_numbers import RowNumbers
from lineage_service.tracing.files.row_search import RowSearch
from lineage_service.tracing.files.row_tables import RowTables
from lineage_service.tracing.files.scan_rows import ScanRows
from lineage_service.tracing.files.source_rows import SourceRows
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.model.topology import Topology

#: Remote files that are read at the same time, for one query.
_AT_ONCE = 8
_FORMATS = {PARQUET: "Parquet", ORC: "ORC", "avro": "Avro", "hadoop": "Hadoop", "pickle": "pickle"}


class RecordLocations:
    """Looks rows up in the files of one application's sources and sinks.

    What takes a check raises what it raises, while much is read.
    """

    def __init__(self, indexes: RowIndexes | None = None) -> None:
        self.file_rows = self._rows = FileRows(indexes or RowIndexes(FileSystems()))
        self._source_rows = SourceRows(self._rows)
        self._finder = RowFinder(self._rows)
        #: For what is computed again of rows.
        self.scan_rows = ScanRows(self._rows)
        self.numbers = RowNumbers(self._rows)

    def rows_of(
        self,
        node: TopologyNode,
        places: Iterable[tuple[int, int]],
        check: Check = unlimited,
        *,
        ended: int | None = None,
        columns: ColumnRequest | None = None,
    ) -> dict[tuple[int, int], SourceRow]:
        """Where the records (partition, offset) of a node stand; empty where its partitions are not files.

        `ended` is the end of the application in Unix milliseconds: it read nothing that was written later.
        With `columns`, rows that have columns come with them.
        """
        by_partition: dict[int, list[int]] = defaultdict(list)
        for partition, offset in places:
            by_partition[partition].append(offset)
        sizes = sizes_of(node) if by_partition else {}

        def rows_of_partition(partition: int) -> dict[int, SourceRow]:
            check()
            info = as_it_was(node.partitions.get(partition, {}), sizes, ended)
            parts = parts_of(node, info)
            if parts:
                return self._source_rows.of_parts(node, parts, by_partition[partition], ended, check, columns)
            return self._source_rows.of_partition(node, info, by_partition[partition], check)

        # A remote file is waited for, and one does not wait for another.
        is_remote = any(
            not is_local(path) for partition in by_partition for path in _paths_of(node, partition)
        )
        workers = min(len(by_partition), _AT_ONCE) if is_remote else 1
        with ThreadPoolExecutor(workers) if workers > 1 else nullcontext() as pool:
            rows_by_partition = (pool.map if pool is not None else map)(rows_of_partition, by_partition)
            return {
                (partition, offset): row
                for partition, rows in zip(by_partition, rows_by_partition, strict=True)
                for offset, row in rows.items()
            }

    # -- from a row to its record -------------------------------------------------------------------

    def find(
        self,
        topology: Topology,
        path: str,
        row: int,
        check: Check = unlimited,
        *,
        direction: Direction = "backward",
        node: int | None = None,
    ) -> list[tuple[int, int, int]]:
        """[(node, partition, offset)] of a row of an input or output file; see `RowFinder.find`.

        Raises NotFoundError, InvalidQueryError.
        """
        return self._finder.find(topology, path, row, check, direction, node)

    def rows_before(
        self, path: str, start: int, check: Check = unlimited, *, format: str = TEXT
    ) -> int | None:
        """How many rows of a file are before the first one of the partition at `start`; None if unknown."""
        return self._rows.rows_before(path, start, check, format=row_format_named(format))

    def rows_in(self, path: str, start: int, length: int, check: Check = unlimited) -> int | None:
        """How many rows the partition of a text file has that is those bytes of it; None if unknown."""
        return self._rows.rows_in(path, start, length, check)

    # -- search -------------------------------------------------------------------------------------

    def has_files(self, node: TopologyNode, partitions: Iterable[int]) -> bool:
        """Whether records of those partitions are rows of files."""
        return any(_paths_of(node, partition) for partition in partitions)

    def search(
        self,
        node: TopologyNode,
        where: Where | str,
        *,
        among: Collection[str] | None = None,
        ended: int | None = None,
    ) -> RowSearch:
        """For the records whose rows fulfil a condition, or hold a text in Parquet or ORC."""
        return RowSearch(self._rows, node, where, among=among, ended=ended)

    def tables(self, database: duckdb.DuckDBPyConnection) -> RowTables:
        """For a comparison in a database."""
        return RowTables(self._rows, database)

    def unsearched(self, node: TopologyNode, partitions: Iterable[int]) -> str | None:
        """What a search does not see of those partitions' rows, in words; None if it sees all.

        None too for a node that has no files.
        """
        for partition in partitions:
            info = node.partitions.get(partition, {})
            parts = parts_of(node, info)
            is_columnar = format_of(node) in (PARQUET, ORC) and all(part.row is not None for part in parts)
            is_searched = row_format_of(node).is_cut or is_columnar if parts else node.is_text
            is_of_files = bool(paths_of(info))
            is_by_line = not ({"files", "record_length"} & info.keys())
            if is_of_files and not (is_searched and is_by_line):
                what = _FORMATS.get(format_of(node), format_of(node)) if is_by_line else node.name
                return f"rows of {what} files were not searched, so there may be more"
        return None

    def matching(
        self,
        node: TopologyNode,
        partition: int,
        *,
        text: str,
        first: int,
        last: int,
        check: Check = unlimited,
    ) -> Iterator[tuple[int, bool]]:
        """(offset, True) of the records of a partition, `first` to before `last`, whose row holds `text`.

        In any case, and in order. Between them (offset, False), when all before that one were looked at.
        Raises UnreadableError.
        """
        info = node.partitions.get(partition)
        if info is not None and (parts := parts_of(node, info)):
            yield from self._rows.matching_parts(row_format_of(node), parts, text, first, last, check)
            return
        if not node.is_text or info is None or "path" not in info:
            return
        path, start = str(info["path"]), int(info["start"])
        state = self._rows.files.state(path)
        begin = self._rows.text_start(path, state, start, check)
        yield from self._rows.indexes.of(path, state, begin).matching(text, first, last, check)


def _paths_of(node: TopologyNode, partition: int) -> list[str]:
    return paths_of(node.partitions.get(partition, {}))

"""The rows of what a run wrote, as texts: lines of text, CSV and JSON, rows of Parquet and ORC as JSON.

Rows of both runs are read the same way, so equal texts are equal rows. Part files may be compressed, and in
folders of partitions. Files that Hadoop hides are none.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from lineage_service.tracing.files import columnar_rows
from lineage_service.tracing.files.decompression import unlimited
from lineage_service.tracing.files.file_parts import PARQUET, plain_path
from lineage_service.tracing.files.file_rows import FileRows
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError, is_local
from lineage_service.tracing.files.row_ends import MAX_ROW_BYTES, shown
from lineage_service.tracing.files.row_formats import RowFormat
from lineage_service.tracing.files.row_indexes import RowIndexes
from lineage_service.tracing.files.shown_columns import shown_columns

__all__ = ["OutputRows", "files_below"]

_BATCH = 10_000


class OutputRows:
    """Reads files of outputs. Raises UnreadableError, also for formats whose rows have no texts."""

    def __init__(self) -> None:
        self._rows = FileRows(RowIndexes(FileSystems()))
        #: A row was longer than what is compared of one.
        self.has_cut = False

    @property
    def files(self) -> FileSystems:
        return self._rows.files

    def texts(self, paths: Iterable[str], format: RowFormat) -> Iterator[list[str]]:
        """In batches."""
        for _, rows in self.numbered(paths, format):
            yield [text for _, text in rows]

    def numbered(
        self, paths: Iterable[str], format: RowFormat
    ) -> Iterator[tuple[str, list[tuple[int, str]]]]:
        """In batches, each of one file: its path, and its rows with their numbers there."""
        for path in paths:
            if format.is_columnar:
                batches = self._columns(path, format)
            elif format.is_cut and not format.has_several:
                batches = self._lines(path, format)
            else:
                raise UnreadableError(f"rows of {format.name} files cannot be compared")
            for batch in batches:
                yield path, batch

    def _lines(self, path: str, format: RowFormat) -> Iterator[list[tuple[int, str]]]:
        index = self._rows.indexes.of(path, self.files.state(path))
        batch: list[tuple[int, str]] = []
        is_header = format.has_header
        with index.rows_from(0, unlimited) as rows:
            for number, data in rows:
                if is_header or not (format.is_text or data.strip()):
                    is_header = False
                    continue
                self.has_cut |= len(data) > MAX_ROW_BYTES
                batch.append((number, shown(data, format.encoding)))
                if len(batch) == _BATCH:
                    yield batch
                    batch = []
        if batch:
            yield batch

    def _columns(self, path: str, format: RowFormat) -> Iterator[list[tuple[int, str]]]:
        with self.files.opened(path, at_length=False) as file:
            opened = pa.PythonFile(file, mode="r")
            try:
                is_parquet = format.name == PARQUET
                count = pq.read_metadata(opened).num_rows if is_parquet else pa.orc.ORCFile(opened).nrows
            except (pa.ArrowException, ValueError) as error:
                raise UnreadableError(f"{path} cannot be read as {format.name}: {error}") from None
        show = partial(shown_columns, path, None)
        for first in range(0, count, _BATCH):
            numbers = range(first, min(first + _BATCH, count))
            rows = columnar_rows.read_rows(self.files, format.name, path, numbers, unlimited, show)
            yield [(number, rows[number][0] or "") for number in numbers if number in rows]


def files_below(place: str) -> Sequence[str]:
    """The part files of a folder of this machine, or the file itself; none where nothing is there."""
    path = plain_path(place)
    if not is_local(path):
        raise UnreadableError(f"{place} is not on this machine")
    if os.path.isfile(path):  # noqa: PTH113 - a path of Spark's is a text
        return [path]
    files: list[str] = []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith(("_", ".")) or "=" in name)
        files += [f"{folder}/{name}" for name in sorted(names) if not name.startswith(("_", "."))]
    return files

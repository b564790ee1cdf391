"""The rows of a job's inputs and outputs as they are now, as tables of Arrow.

Reads Parquet, ORC, CSV, JSON lines, text and Delta tables, with the columns of partition folders. A line of
text is a row with one column, `line`. What cannot be read in time, or is changed while it is read, is not
read: then it is not known. Decides nothing.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import unquote

import pyarrow as pa

from lineage_service.errors import LineageError
from lineage_service.tracing.files.file_systems import FileSystems
from lineage_service.tracing.files.row_formats import RowFormat, columns_of_records, row_format_of
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.triggering.certain.file_looks import FileLook, FileLooks, LookError

__all__ = ["Container", "RowReader", "UnreadRowsError", "container_of", "files_of"]

#: The column of a text.
LINE = "line"
#: Python's own lines end in more places than Spark's.
_LINE_END = re.compile("\r\n|\n|\r")
#: Of what files a table is.
_FILES = "files"
#: Of the time that there is, a byte takes so much at least: more is not begun.
_BYTES_A_SECOND = 50_000_000
_COMPRESSED = {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}
_UNREAD = frozenset(("snappy", "lz4", "deflate", "xz"))
_BY_ENDING = {"parquet": "parquet", "orc": "orc", "csv": "csv", "json": "json", "jsonl": "json"}


class UnreadRowsError(LineageError):
    """Rows are not known: why."""


@dataclass(frozen=True, slots=True)
class Container:
    """A path of a job. `format` None: each file is what its name says. `columns` are those of CSV without a
    header.
    """

    path: str
    is_output: bool
    format: RowFormat | None = None
    columns: tuple[str, ...] = ()


def container_of(path: str, node: TopologyNode | None, *, is_output: bool) -> Container:
    if node is None:
        return Container(path, is_output)
    return Container(
        path, is_output, row_format_of(node), tuple(column.name for column in columns_of_records(node))
    )


class RowReader:
    """Reads for so many seconds in all, whatever happens between. What is in `tables`, by path and digest, it
    does not read again.
    """

    def __init__(self, seconds: float, tables: dict[tuple[str, str], pa.Table]) -> None:
        self._systems, self._tables = FileSystems(), tables
        self._seconds, self._left, self._until = seconds, seconds, 0.0

    def rows(self, container: Container, look: FileLook) -> pa.Table:
        """All that the look saw. Raises UnreadRowsError."""
        key = (container.path, look.digest)
        if key not in self._tables:
            began = time.monotonic()
            self._until = began + self._left
            self._tables[key] = self._read(container, look)
            self._left -= time.monotonic() - began
        return self._tables[key]

    def _read(self, container: Container, look: FileLook) -> pa.Table:
        path = container.path
        if look.bytes > self._seconds * _BYTES_A_SECOND:
            raise UnreadRowsError(
                f"{path} has {look.bytes:,} bytes, which cannot be read within {self._seconds:g} s"
            )
        try:
            if look.version is not None:
                return _flat(self._of_delta(path, look.version))
            parts = {file: self._of_file(container, file) for file, (size, _) in _files(look) if size}
            table = _together(list(parts.values()))
        except UnreadRowsError:
            raise
        except (LineageError, pa.ArrowException, OSError, ValueError, UnicodeError, MemoryError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
            raise UnreadRowsError(f"the rows of {path} cannot be read: {reason}") from None
        try:
            if not self._is_as_seen(FileLooks(self._systems, self._seconds).at(path), look):
                raise UnreadRowsError(f"{path} was written while it was read")
        except LookError as error:
            raise UnreadRowsError(str(error)) from None
        counts = [(file, part.num_rows) for file, part in parts.items() if part.num_columns]
        return _flat(table).replace_schema_metadata({_FILES: json.dumps(counts)})

    def _is_as_seen(self, now: FileLook, look: FileLook) -> bool:
        return now.digest == look.digest

    def _of_delta(self, path: str, version: int) -> pa.Table:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        try:
            return DeltaTable(path, version=version).to_pyarrow_table()
        except DeltaError as error:
            raise UnreadRowsError(f"the Delta table {path} cannot be read: {error}") from None

    def _of_file(self, container: Container, file: str) -> pa.Table:
        if time.monotonic() > self._until:
            raise UnreadRowsError(f"{container.path} takes longer to read than {self._seconds:g} s")
        form = container.format or RowFormat(_BY_ENDING.get(file.rpartition(".")[2].lower(), "text"))
        read = _READERS.get(form.name)
        if read is None:
            raise UnreadRowsError(f"rows of {container.path} are not read: its format is {form.name}")
        with self._systems.opened(file, at_length=True) as source:
            table = read(_decompressed(file, source), form, container.columns, container.format is None)
        for name, value in _partition(container.path, file).items():
            if name not in table.column_names:
                table = table.append_column(name, pa.array([value] * table.num_rows, pa.string()))
        return table


def files_of(table: pa.Table) -> list[tuple[str, int]]:
    """The files of which a table was read, in the order of its rows, and how many rows each has.

    None of a Delta table.
    """
    counts = (table.schema.metadata or {}).get(_FILES.encode())
    return [] if counts is None else [(file, count) for file, count in json.loads(counts)]


def _files(look: FileLook) -> list[tuple[str, tuple[int, int]]]:
    if look.count != len(look.files):
        raise UnreadRowsError(f"the times of the files of {look.path} are not known")
    return sorted(look.files.items())


def _partition(path: str, file: str) -> Mapping[str, str]:
    """The columns of the folders between them, as `day=3`."""
    folders = file[len(path) :].split("/")[:-1] if file.startswith(path) else []
    pairs = [folder.partition("=") for folder in folders if "=" in folder]
    return {unquote(name): unquote(value) for name, _, value in pairs}


def _decompressed(file: str, source: BinaryIO) -> Any:
    ending = file.rpartition(".")[2].lower()
    if ending in _UNREAD:
        raise UnreadRowsError(f"{file} is compressed in a way that is not read here")
    codec = _COMPRESSED.get(ending)
    return source if codec is None else pa.CompressedInputStream(source, codec)


def _parquet(source: Any, form: RowFormat, columns: Sequence[str], by_ending: bool) -> pa.Table:
    import pyarrow.parquet

    return pyarrow.parquet.read_table(source, partitioning=None)


def _orc(source: Any, form: RowFormat, columns: Sequence[str], by_ending: bool) -> pa.Table:
    import pyarrow.orc

    return pyarrow.orc.read_table(source)


def _csv(source: Any, form: RowFormat, columns: Sequence[str], by_ending: bool) -> pa.Table:
    from pyarrow import csv

    dialect = form.dialect
    if dialect.comment or len(dialect.delimiter or ",") != 1:
        raise UnreadRowsError("CSV with comments, or with a delimiter of several characters, is not read")
    has_header = form.has_header or by_ending
    text = source.read()
    if not text or text.isspace():
        return pa.table({})
    if not has_header and not columns:
        first = text.split(b"\n", 1)[0]
        columns = [f"_c{at}" for at in range(first.count((dialect.delimiter or ",").encode()) + 1)]
    return csv.read_csv(
        pa.BufferReader(text),
        read_options=csv.ReadOptions(
            column_names=None if has_header else list(columns), encoding=form.encoding, use_threads=False
        ),
        parse_options=csv.ParseOptions(
            delimiter=dialect.delimiter or ",",
            quote_char=dialect.quote or False,
            escape_char=dialect.escape or False,
            newlines_in_values=form.has_several,
        ),
    )


def _json(source: Any, form: RowFormat, columns: Sequence[str], by_ending: bool) -> pa.Table:
    from pyarrow import json as lines

    if form.has_several:
        raise UnreadRowsError("JSON of several lines is not read")
    text = source.read()
    return lines.read_json(pa.BufferReader(text)) if text and not text.isspace() else pa.table({})


def _text(source: Any, form: RowFormat, columns: Sequence[str], by_ending: bool) -> pa.Table:
    lines = _LINE_END.split(source.read().decode(form.encoding, "surrogateescape"))
    if not lines[-1]:
        lines.pop()
    return pa.table(
        {LINE: pa.array([line.encode("utf-8", "surrogateescape") for line in lines], pa.binary())}
    )


_READERS: Mapping[str, Callable[[Any, RowFormat, Sequence[str], bool], pa.Table]] = {
    "parquet": _parquet,
    "orc": _orc,
    "csv": _csv,
    "json": _json,
    "text": _text,
}


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    """Files may have guessed the type of a column differently: then numbers are floats, all else texts."""
    tables = [table for table in tables if table.num_columns]
    if not tables:
        return pa.table({})
    kinds: dict[str, set[pa.DataType]] = {}
    for table in tables:
        for field in table.schema:
            if not pa.types.is_null(field.type):
                kinds.setdefault(field.name, set()).add(field.type)
    for name, types in kinds.items():
        if len(types) > 1:
            is_number = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in types)
            tables = [_cast(table, name, pa.float64() if is_number else pa.string()) for table in tables]
    return pa.concat_tables(tables, promote_options="default").combine_chunks()


def _cast(table: pa.Table, name: str, kind: pa.DataType) -> pa.Table:
    at = table.schema.get_field_index(name)
    return table if at < 0 else table.set_column(at, name, table.column(at).cast(kind))


def _flat(table: pa.Table) -> pa.Table:
    """What is nested as its JSON, and nothing where a column says nothing."""
    for at, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            texts = [
                None if value is None else json.dumps(value, default=str, sort_keys=True)
                for value in table.column(at).to_pylist()
            ]
            table = table.set_column(at, field.name, pa.array(texts, pa.string()))
        elif pa.types.is_null(field.type) or pa.types.is_dictionary(field.type):
            kind = pa.string() if pa.types.is_null(field.type) else field.type.value_type
            table = table.set_column(at, field.name, table.column(at).cast(kind))
    return table

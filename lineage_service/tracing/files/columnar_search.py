"""Which rows of Parquet and ORC files fulfil a condition or hold a text, by their numbers.

DuckDB reads Parquet files of this machine itself. Others come to it through Arrow, a row group or a stripe at
a time, and only the columns that are asked for. Row groups that statistics rule out are not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq

from lineage_service.conditions.column_types import ColumnType, of_arrow
from lineage_service.conditions.filters import Filter
from lineage_service.conditions.tree import Condition
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import PARQUET
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError, is_local
from lineage_service.tracing.files.row_group_statistics import row_groups_with

__all__ = ["ColumnarSearch", "holds_text", "schema_of", "types_of"]

Numbers = npt.NDArray[np.int64]

_ROW = "file_row_number"
#: What DuckDB would take for a pattern of many files.
_PATTERN = re.compile(r"[*?\[\]{}]")
_TEXTS = frozenset(("text", "boolean", "number", "date"))


class ColumnarSearch:
    """Of the files of one query. `database` is a `searched_database`."""

    def __init__(self, files: FileSystems, database: duckdb.DuckDBPyConnection) -> None:
        self._files, self._database = files, database

    def types(self, format: str, path: str) -> dict[str, ColumnType]:
        """The columns of a file, in their order. Raises UnreadableError."""
        return types_of(self.schema(format, path))

    def schema(self, format: str, path: str) -> pa.Schema:
        """Raises UnreadableError."""
        return schema_of(self._files, format, path)

    def matching(
        self,
        format: str,
        path: str,
        types: Mapping[str, ColumnType],
        filter: Filter,
        names: list[str],
        check: Check,
        condition: Condition | None = None,
    ) -> Numbers:
        """Ascending. `names` are the columns of the file that the filter reads; it is that of `condition`.

        Raises UnreadableError.
        """
        # DuckDB takes names that differ in case for one.
        every = [name.casefold() for name in types]
        is_plain = _ROW not in every and all(every.count(name.casefold()) == 1 for name in names)
        with _readable(format):
            if is_plain and format == PARQUET and is_local(path) and not _PATTERN.search(path):
                return self._in_file(path, filter)
            matches = [
                first + self._in_table(table, filter)
                for first, table in self._tables(format, path, names, check, condition)
            ]
        return np.concatenate(matches) if matches else np.empty(0, np.int64)

    def tables(
        self, format: str, path: str, names: list[str], check: Check
    ) -> Iterator[tuple[int, pa.Table]]:
        """All rows of a file by these columns, with the number of the first of each table.

        Raises UnreadableError.
        """
        with _readable(format):
            yield from self._tables(format, path, names, check, None)

    def _in_file(self, path: str, filter: Filter) -> Numbers:
        query = (
            f"SELECT {_ROW} FROM read_parquet(?, file_row_number = true, hive_partitioning = false) "
            f"WHERE {filter.sql} ORDER BY {_ROW}"
        )
        return _numbers(self._database.execute(query, [path, *filter.parameters]), _ROW)

    def _in_table(self, table: pa.Table, filter: Filter) -> Numbers:
        numbered = table.append_column(_ROW, pa.array(np.arange(table.num_rows, dtype=np.int64)))
        self._database.register("rows", numbered)
        try:
            query = f"SELECT {_ROW} FROM rows WHERE {filter.sql} ORDER BY {_ROW}"
            return _numbers(self._database.execute(query, list(filter.parameters)), _ROW)
        finally:
            self._database.unregister("rows")

    def _tables(
        self, format: str, path: str, names: list[str], check: Check, condition: Condition | None
    ) -> Iterator[tuple[int, pa.Table]]:
        """With the number of the first row of each."""
        with self._files.opened(path, at_length=True) as file:
            opened = _opened(format, file)
            schema = opened.schema_arrow if format == PARQUET else opened.schema
            # Arrow takes a point in a name for the way to a field.
            chosen = None if any("." in name for name in schema.names) else names or schema.names[:1]
            if format == PARQUET:
                yield from _row_groups(opened, file, names, chosen, check, condition)
                return
            first = 0
            for number in range(opened.nstripes):
                check()
                table = _table(opened.read_stripe(number, columns=chosen))
                yield first, table.select(names or table.schema.names[:1])
                first += table.num_rows


def _row_groups(
    opened: Any,
    file: BinaryIO,
    names: list[str],
    chosen: list[str] | None,
    check: Check,
    condition: Condition | None,
) -> Iterator[tuple[int, pa.Table]]:
    schema = opened.schema_arrow
    numbers = None
    if condition is not None:
        numbers = row_groups_with(condition, pa.PythonFile(file, mode="r"), schema)
    first = 0
    for number in range(opened.num_row_groups):
        check()
        if numbers is None or number in numbers:
            table = opened.read_row_group(number, columns=chosen, use_threads=False)
            yield first, table.select(names or table.schema.names[:1])
        first += opened.metadata.row_group(number).num_rows


def schema_of(files: FileSystems, format: str, path: str) -> pa.Schema:
    """Of a file. Raises UnreadableError."""
    with files.opened(path, at_length=False) as file, _readable(format):
        return _opened(format, file).schema_arrow if format == PARQUET else _opened(format, file).schema


def types_of(schema: pa.Schema) -> dict[str, ColumnType]:
    """The columns of a file, in their order."""
    return {field.name: of_arrow(field.type) for field in schema}


def holds_text(types: Mapping[str, ColumnType], text: str, operand: Callable[[str], str]) -> Filter:
    """The rows of which a value holds a text, in any case. `operand` reads a column."""
    parts: list[str] = []
    parameters: list[object] = []
    for name, type in types.items():
        column = operand(name)
        shown = f"hex({column})" if type.kind == "bytes" else f"CAST({column} AS VARCHAR)"
        parts.append(f"contains(lower({shown}), lower(CAST(? AS VARCHAR)))")
        parameters.append(text)
        if type.kind not in _TEXTS:  # as ISO 8601 writes times, too
            parts.append(f"contains(lower(replace({shown}, ' ', 't')), lower(CAST(? AS VARCHAR)))")
            parameters.append(text)
    return Filter(" OR ".join(parts) or "FALSE", tuple(parameters))


def _opened(format: str, file: Any) -> Any:
    source = pa.PythonFile(file, mode="r")
    # Spark's timestamps of 96 bits have no nanoseconds.
    return (
        pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
        if format == PARQUET
        else pyarrow.orc.ORCFile(source)
    )


def _table(read: pa.Table | pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([read]) if isinstance(read, pa.RecordBatch) else read


def _numbers(result: duckdb.DuckDBPyConnection, name: str) -> Numbers:
    return np.asarray(result.fetchnumpy()[name], np.int64)


@contextmanager
def _readable(format: str) -> Iterator[None]:
    """What goes wrong with the contents of a file in the block becomes an UnreadableError."""
    try:
        yield
    except duckdb.InterruptException:
        raise
    except (duckdb.Error, pa.ArrowException, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # not Arrow's, of what the file holds, but the system's
        name = "Parquet" if format == PARQUET else "ORC"
        said = " ".join(str(error).split())[:160]
        raise UnreadableError(
            f"the file cannot be searched as {name} ({said}): put a whole copy in its place"
        ) from None

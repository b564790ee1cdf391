"""The rows of the files that a scan has read, with the values that Spark read of them, where they are sure.

For what is computed again of rows. A file that is another one by now is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lineage_service.evaluation.scanned_row import of_columnar, of_folders, of_line
from lineage_service.evaluation.values import INTEGERS, Result, Value
from lineage_service.lineage import Column
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import (
    CSV_WITH_HEADER,
    LINES,
    PARQUET,
    TEXT,
    FilePart,
    format_of,
    parts_of,
)
from lineage_service.tracing.files.file_rows import FileRows
from lineage_service.tracing.files.file_systems import UnreadableError
from lineage_service.tracing.files.partition_folders import partition_values
from lineage_service.tracing.files.record_lines import BLANKS
from lineage_service.tracing.files.row_formats import columns_of_records
from lineage_service.tracing.files.source_rows import change_of
from lineage_service.tracing.files.spark_type_names import spark_type
from lineage_service.tracing.model.elements import TopologyNode

__all__ = ["ScanRows"]

_BATCH = 1 << 14
#: Types of which Arrow's equality is Spark's.
_EQUAL = frozenset((*INTEGERS, "string", "date"))


class ScanRows:
    """What takes a check raises what it raises, and UnreadableError. Threads may share it."""

    def __init__(self, rows: FileRows) -> None:
        self._rows = rows

    def row(self, node: TopologyNode, path: str, number: int, check: Check) -> dict[str, Result]:
        """Of one row of a Parquet file, by its number."""
        names = {column.name for column in node.schema}
        with self._rows.files.opened(path, at_length=False) as file, _parquet(file) as opened:
            first = 0
            for group in range(opened.metadata.num_row_groups):
                end = first + opened.metadata.row_group(group).num_rows
                if first <= number < end:
                    table = _batch_with(opened, group, number - first, names, check)
                    return next(_values(node, path, opened, table))
                first = end
        return {}

    def every(
        self,
        node: TopologyNode,
        names: Collection[str],
        keys: Mapping[str, Value],
        ended: int | None,
        check: Check,
    ) -> Iterator[dict[str, Result]]:
        """The columns `names` of each row. Rows with other keys than `keys` may be left out."""
        for part in _files(node):
            check()
            self._check_unchanged(part, ended)
            if format_of(node) == PARQUET:
                yield from self._of_parquet(node, part.path, names, keys, check)
            elif format_of(node) in LINES:
                yield from self._of_lines(node, part.path, check)
            else:
                raise UnreadableError(f"rows of {format_of(node)} are not computed again here")

    def _check_unchanged(self, part: FilePart, ended: int | None) -> None:
        state = self._rows.files.state(part.path)
        if change_of(state, part.as_partition(ended if part.size is None else None)) is not None:
            raise UnreadableError(f"{part.path} has changed since the run")

    def _of_parquet(
        self,
        node: TopologyNode,
        path: str,
        names: Collection[str],
        keys: Mapping[str, Value],
        check: Check,
    ) -> Iterator[dict[str, Result]]:
        with self._rows.files.opened(path, at_length=True) as file, _parquet(file) as opened:
            columns = _existing(opened, {*names, *keys})
            for batch in opened.iter_batches(batch_size=_BATCH, columns=columns, use_threads=False):
                check()
                table = pa.Table.from_batches([batch])
                for name, key in keys.items():
                    table = _with_key(table, name, key)
                yield from _values(node, path, opened, table)

    def _of_lines(self, node: TopologyNode, path: str, check: Check) -> Iterator[dict[str, Result]]:
        format, in_file = format_of(node), _columns_in_files(node)
        options = (node.expressions or {}).get("options", {})
        folders = _of_folders(node, path)
        is_header_next = format == CSV_WITH_HEADER
        with self._rows.indexes.of(path, self._rows.files.state(path)).rows_from(0, check) as lines:
            for _, data in lines:
                if format != TEXT and not data.strip(BLANKS):
                    continue
                if is_header_next:
                    is_header_next = False
                    continue
                line = data.decode("utf-8", "replace")
                yield {} if "\ufffd" in line else {**of_line(format, line, in_file, options), **folders}


@contextmanager
def _parquet(file: Any) -> Iterator[pq.ParquetFile]:
    """Raises UnreadableError, also of what is read within."""
    try:
        with pq.ParquetFile(pa.PythonFile(file, mode="r"), coerce_int96_timestamp_unit="us") as opened:
            yield opened
    except (pa.ArrowException, ValueError) as error:
        said = " ".join(str(error).split())[:120]
        raise UnreadableError(f"the file cannot be read as Parquet ({said})") from None


def _batch_with(
    opened: pq.ParquetFile, group: int, number: int, names: Collection[str], check: Check
) -> pa.Table:
    """Of one row of a row group, of which no more is in memory than a batch."""
    columns, first = _existing(opened, names), 0
    batches = opened.iter_batches(batch_size=_BATCH, row_groups=[group], columns=columns, use_threads=False)
    for batch in batches:
        check()
        if number < first + batch.num_rows:
            return pa.Table.from_batches([batch.slice(number - first, 1)])
        first += batch.num_rows
    raise UnreadableError("the file has less rows than its footer says")


def _existing(opened: pq.ParquetFile, names: Collection[str]) -> list[str]:
    """Those that no path of Arrow's could be taken for."""
    return [name for name in opened.schema_arrow.names if name in names and "." not in name]


def _values(
    node: TopologyNode, path: str, opened: pq.ParquetFile, table: pa.Table
) -> Iterator[dict[str, Result]]:
    """Of each row of a piece of a file. What Python has no value for makes them unknown."""
    in_file, folders = _columns_in_files(node), _of_folders(node, path)
    old_times = {
        column.path
        for column in map(opened.metadata.schema.column, range(opened.metadata.num_columns))
        if column.physical_type == "INT96"
    }
    for at, name in enumerate(table.column_names):
        if name in old_times:  # an instant, which Arrow does not know
            table = table.set_column(at, name, table.column(at).cast(pa.timestamp("us", "UTC")))
    types = {field.name: _type(field.type) for field in table.schema}
    try:
        rows = table.to_pylist()
    except (ArithmeticError, LookupError, ValueError):
        rows = [{}] * table.num_rows
    for row in rows:
        yield {**of_columnar(row, types, in_file), **folders}


def _type(type_: pa.DataType) -> str:
    is_local = pa.types.is_timestamp(type_) and type_.tz is None
    return "timestamp_ntz" if is_local else spark_type(type_)


def _with_key(table: pa.Table, name: str, key: Value) -> pa.Table:
    """Its rows with that key, if these can be told."""
    if name not in table.column_names or key.type not in _EQUAL or key.data is None:
        return table
    column = table.column(name)
    if spark_type(column.type) != key.type:
        return table
    return table.filter(pc.equal(column, pa.scalar(key.data, column.type)))


def _columns_in_files(node: TopologyNode) -> list[Column]:
    partitions = () if node.dataset is None else node.dataset.partitions
    return [column for column in columns_of_records(node) if column.name not in partitions]


def _of_folders(node: TopologyNode, path: str) -> dict[str, Result]:
    partitions = () if node.dataset is None else node.dataset.partitions
    return of_folders(partition_values(path), [column for column in node.schema if column.name in partitions])


def _files(node: TopologyNode) -> list[FilePart]:
    """Each file once."""
    files: dict[str, FilePart] = {}
    for info in node.partitions.values():
        for part in parts_of(node, info):
            files.setdefault(part.path, part)
    return [files[path] for path in sorted(files)]

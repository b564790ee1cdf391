"""Copies some rows of a Parquet or ORC file into one of the same schema and the same compression.

Row group by row group, so that memory is bounded. A file that cannot be written with its schema is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq

from lineage_service.tracing.files.chosen_rows import ChosenRows
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import PARQUET
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError

__all__ = ["copy_rows"]

_BATCH = 16_384
_WHOLE = ("INT32", "INT64")
#: Where pyarrow writes another name than it reads.
_CODECS = {"UNCOMPRESSED": "NONE"}


def copy_rows(
    files: FileSystems, format: str, path: str, target: BinaryIO, chosen: ChosenRows, check: Check
) -> int:
    """How many rows were copied. Raises UnreadableError."""
    copy = _copy_parquet if format == PARQUET else _copy_orc
    with files.opened(path, at_length=True) as file:
        try:
            return copy(pa.PythonFile(file, "r"), target, chosen, check)
        except (pa.ArrowException, ValueError, NotImplementedError) as error:
            said = " ".join(str(error).split())[:120]
            raise UnreadableError(f"its rows cannot be copied ({said})") from None


def _copy_parquet(file: pa.PythonFile, target: BinaryIO, chosen: ChosenRows, check: Check) -> int:
    # Spark's timestamps have 96 bits, and no nanoseconds.
    with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as opened:
        schema = opened.schema_arrow
        with pq.ParquetWriter(target, schema, **_options(opened)) as writer:
            copied = 0
            for batch in _chosen(_batches(opened, check), chosen):
                writer.write_batch(batch)
                copied += batch.num_rows
    return copied


def _options(opened: pq.ParquetFile) -> dict[str, Any]:
    """How the file was written, as far as a reader notices."""
    metadata, columns = opened.metadata, [opened.schema.column(at) for at in range(len(opened.schema))]
    compression: dict[str, str] | str = "snappy"
    if metadata.num_row_groups:
        group = metadata.row_group(0)
        compression = {
            chunk.path_in_schema: _CODECS.get(chunk.compression, chunk.compression)
            for chunk in (group.column(at) for at in range(group.num_columns))
        }
    times = {column.physical_type for column in columns if _is_time(column)}
    if len(times) > 1:
        raise ValueError("it has times of 96 and of 64 bits")
    return {
        "compression": compression,
        "use_deprecated_int96_timestamps": times == {"INT96"},
        "store_decimal_as_integer": any(
            column.logical_type.type == "DECIMAL" and column.physical_type in _WHOLE for column in columns
        ),
        "use_compliant_nested_type": not any(".array" in column.path for column in columns),
        "store_schema": b"ARROW:schema" in (metadata.metadata or {}),
    }


def _is_time(column: Any) -> bool:
    return bool(column.physical_type == "INT96" or column.logical_type.type == "TIMESTAMP")


def _batches(opened: pq.ParquetFile, check: Check) -> Iterator[pa.RecordBatch]:
    for group in range(opened.metadata.num_row_groups):
        for batch in opened.iter_batches(batch_size=_BATCH, row_groups=[group], use_threads=False):
            check()
            yield batch


def _copy_orc(file: pa.PythonFile, target: BinaryIO, chosen: ChosenRows, check: Check) -> int:
    opened = pyarrow.orc.ORCFile(file)
    if any(_has_times(field.type) for field in opened.schema):
        raise ValueError("it has times, which are not copied without a loss: write it as Parquet")

    def stripes() -> Iterator[pa.RecordBatch]:
        for number in range(opened.nstripes):
            check()
            yield opened.read_stripe(number)

    copied = 0
    writer = pyarrow.orc.ORCWriter(target, compression=str(opened.compression).lower())
    try:
        writer.write(opened.schema.empty_table())
        for batch in _chosen(stripes(), chosen):
            writer.write(pa.Table.from_batches([batch]))
            copied += batch.num_rows
    finally:
        writer.close()
    return copied


def _has_times(type: pa.DataType) -> bool:
    children = [type.field(at).type for at in range(type.num_fields)]
    return pa.types.is_timestamp(type) or any(map(_has_times, children))


def _chosen(batches: Iterator[pa.RecordBatch], chosen: ChosenRows) -> Iterator[pa.RecordBatch]:
    first = 0
    for batch in batches:
        end = first + batch.num_rows
        numbers = chosen.numbers_within(first, end)
        if len(numbers) == batch.num_rows:
            yield batch
        elif numbers:
            yield batch.take(pa.array([number - first for number in numbers], pa.int64()))
        first = end

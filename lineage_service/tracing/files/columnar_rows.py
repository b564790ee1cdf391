"""Rows of Parquet and ORC files as JSON texts. Only row groups and stripes are read that hold what is wanted.

Arrow does not say how many rows a stripe has: of those before what is wanted, one column is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import date, time
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq

from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import PARQUET
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError

__all__ = ["read_rows"]

#: Rows that are decoded together, and how much of the text of one is shown.
_BATCH = 16_384
_MOST_CHARACTERS = 100_000


def read_rows(
    files: FileSystems, format: str, path: str, rows: Iterable[int], check: Check
) -> dict[int, str]:
    """The rows by their numbers, from 0; those that are not there are not. Raises UnreadableError."""
    numbers = sorted(set(rows))
    with files.opened(path, at_length=False) as file:
        opened = pa.PythonFile(file, mode="r")
        batches = _row_groups(opened, numbers) if format == PARQUET else _stripes(opened, numbers, check)
        try:
            return dict(_read(batches, numbers, check))
        except (pa.ArrowException, ValueError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # not Arrow's, of what the file holds, but the system's
            name = "Parquet" if format == PARQUET else "ORC"
            said = " ".join(str(error).split())[:120]
            raise UnreadableError(
                f"the file cannot be read as {name} ({said}): put a whole copy in its place"
            ) from None


def _row_groups(file: pa.PythonFile, numbers: list[int]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches of those that hold what is wanted, each with the number of its first row."""
    # Spark's timestamps have 96 bits, and no nanoseconds.
    with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as opened:
        first = 0
        for number in range(opened.metadata.num_row_groups):
            end = first + opened.metadata.row_group(number).num_rows
            in_group = [row for row in numbers if first <= row < end]
            if in_group:
                at = first
                for batch in opened.iter_batches(batch_size=_BATCH, row_groups=[number], use_threads=False):
                    yield at, batch
                    at += batch.num_rows
                    if at > in_group[-1]:
                        break
            first = end


def _stripes(file: pa.PythonFile, numbers: list[int], check: Check) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Those that hold what is wanted, each with the number of its first row."""
    opened = pyarrow.orc.ORCFile(file)
    narrow = min(opened.schema, key=_width, default=None)
    first = 0
    for number in range(opened.nstripes):
        if narrow is None or first > numbers[-1]:
            return
        check()
        end = first + opened.read_stripe(number, columns=[narrow.name]).num_rows
        if any(first <= row < end for row in numbers):
            yield first, opened.read_stripe(number)
        first = end


def _width(field: pa.Field) -> int:
    """In bits, of a value; of one that is not of one width, more than of these."""
    try:
        return int(field.type.bit_width)
    except ValueError:
        return 1 << 20 if pa.types.is_nested(field.type) else 1 << 10


def _read(
    batches: Iterable[tuple[int, pa.RecordBatch]], numbers: list[int], check: Check
) -> Iterator[tuple[int, str]]:
    for first, batch in batches:
        check()
        for row in numbers:
            if first <= row < first + batch.num_rows:
                yield row, _text(_values(batch.slice(row - first, 1)))


def _values(row: pa.RecordBatch) -> dict[str, Any]:
    """Of the one row."""
    return {name: _value(column) for name, column in zip(row.schema.names, row.columns, strict=True)}


def _value(column: pa.Array) -> Any:
    """Of its one value. Python has no dates beyond its years, nor all time zones: then it is Arrow's text."""
    try:
        return column[0].as_py()
    except UnicodeDecodeError:
        if not isinstance(column[0], pa.StringScalar):
            raise
        return column[0].as_buffer().to_pybytes().decode("utf-8", "replace")
    except (ArithmeticError, LookupError):
        return " ".join(str(column)[1:-1].split())


def _text(row: dict[str, Any]) -> str:
    text = json.dumps(row, ensure_ascii=False, default=_plain)
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "…"


def _plain(value: object) -> object:
    """What JSON has no form for: bytes as hexadecimal, times as ISO 8601, decimals as they are written."""
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if isinstance(value, date | time) else str(value)

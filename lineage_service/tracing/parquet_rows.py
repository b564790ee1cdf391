"""Rows of Parquet files as JSON texts. Only the row groups are read that hold what is wanted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import date, time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lineage_service.file_systems import FileSystems, UnreadableError
from lineage_service.tracing.decompressed import Check

__all__ = ["read_rows"]

#: Rows that are decoded together, and how much of the text of one is shown.
_BATCH = 16_384
_MOST_CHARACTERS = 100_000


def read_rows(files: FileSystems, path: str, rows: Iterable[int], check: Check) -> dict[int, str]:
    """The rows by their numbers, from 0; those that are not there are not. Raises UnreadableError."""
    wanted = sorted(set(rows))
    with files.opened(path, at_length=False) as file:
        try:
            with pq.ParquetFile(
                pa.PythonFile(file, mode="r"), coerce_int96_timestamp_unit="us"
            ) as opened:  # Spark's timestamps have 96 bits, and no nanoseconds
                return dict(_read(opened, wanted, check))
        except (pa.ArrowException, ValueError) as error:
            said = " ".join(str(error).split())[:120]
            raise UnreadableError(
                f"the file cannot be read as Parquet ({said}): put a whole copy in its place"
            ) from None


def _read(opened: pq.ParquetFile, wanted: list[int], check: Check) -> Iterator[tuple[int, str]]:
    before = 0
    for number in range(opened.metadata.num_row_groups):
        count = opened.metadata.row_group(number).num_rows
        here = [row for row in wanted if before <= row < before + count]
        if here:
            first = before
            batches = opened.iter_batches(batch_size=_BATCH, row_groups=[number], use_threads=False)
            for batch in batches:
                check()
                for row in here:
                    if first <= row < first + batch.num_rows:
                        yield row, _text(_values(batch.slice(row - first, 1)))
                first += batch.num_rows
                if first > here[-1]:
                    break
        before += count


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

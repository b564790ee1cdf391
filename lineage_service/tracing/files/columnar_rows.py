"""Rows of Parquet and ORC files. Only row groups and stripes are read that hold what is wanted.

Arrow does not say how many rows a stripe has: of those before what is wanted, one column is read.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq

from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import PARQUET
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError
from lineage_service.tracing.files.json_values import plain
from lineage_service.tracing.files.spark_type_names import spark_type

__all__ = ["json_text", "read_rows"]

#: Rows that are decoded together, and how much of the text of one is shown.
_BATCH = 16_384
_MOST_CHARACTERS = 100_000
#: Values that are Python's at a time.
_MOST_CELLS = 1 << 16


T = TypeVar("T")


def read_rows(
    files: FileSystems,
    format: str,
    path: str,
    rows: Iterable[int],
    check: Check,
    show: Callable[[dict[str, Any], Mapping[str, str]], T],
    names: Collection[str] | None = None,
) -> dict[int, T]:
    """The rows by their numbers, from 0; those that are not there are not. Raises UnreadableError.

    `show` makes of (values, types by Spark's names) what is kept of a row. With `names`, only these columns
    are read.
    """
    numbers = sorted(set(rows))
    with files.opened(path, at_length=False) as file:
        opened = pa.PythonFile(file, mode="r")
        read = _row_groups if format == PARQUET else _stripes
        try:
            return dict(_read(read(opened, numbers, check, names), numbers, check, show))
        except (pa.ArrowException, ValueError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # not Arrow's, of what the file holds, but the system's
            name = "Parquet" if format == PARQUET else "ORC"
            said = " ".join(str(error).split())[:120]
            raise UnreadableError(
                f"the file cannot be read as {name} ({said}): put a whole copy in its place"
            ) from None


def json_text(row: dict[str, Any]) -> str:
    """A row as the text of JSON, cut where it is long."""
    text = json.dumps(row, ensure_ascii=False, default=plain)
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "…"


def _row_groups(
    file: pa.PythonFile, numbers: list[int], check: Check, names: Collection[str] | None
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches of those that hold what is wanted, each with the number of its first row."""
    # Spark's timestamps have 96 bits, and no nanoseconds.
    with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as opened:
        first = 0
        columns = _columns(opened.schema_arrow, names)
        for number in range(opened.metadata.num_row_groups):
            check()
            end = first + opened.metadata.row_group(number).num_rows
            in_group = _within(numbers, first, end)
            if in_group:
                at = first
                for batch in opened.iter_batches(
                    batch_size=_BATCH, row_groups=[number], columns=columns, use_threads=False
                ):
                    yield at, batch
                    at += batch.num_rows
                    if at > in_group[-1]:
                        break
            first = end


def _stripes(
    file: pa.PythonFile, numbers: list[int], check: Check, names: Collection[str] | None
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Those that hold what is wanted, each with the number of its first row."""
    opened = pyarrow.orc.ORCFile(file)
    narrow = min(opened.schema, key=_width, default=None)
    columns = _columns(opened.schema, names)
    first = 0
    for number in range(opened.nstripes):
        if narrow is None or first > numbers[-1]:
            return
        check()
        end = first + opened.read_stripe(number, columns=[narrow.name]).num_rows
        if _within(numbers, first, end):
            yield first, opened.read_stripe(number, columns=columns)
        first = end


def _columns(schema: pa.Schema, names: Collection[str] | None) -> list[str] | None:
    """Those to read; None: all, too where Arrow would take a name for a path."""
    if names is None or any("." in name for name in schema.names):
        return None
    return [name for name in schema.names if name in names] or schema.names[:1]


def _width(field: pa.Field) -> int:
    """In bits, of a value; of one that is not of one width, more than of these."""
    try:
        return int(field.type.bit_width)
    except ValueError:
        return 1 << 20 if pa.types.is_nested(field.type) else 1 << 10


def _read(
    batches: Iterable[tuple[int, pa.RecordBatch]],
    numbers: list[int],
    check: Check,
    show: Callable[[dict[str, Any], Mapping[str, str]], T],
) -> Iterator[tuple[int, T]]:
    for first, batch in batches:
        names = batch.schema.names
        types = {name: spark_type(type_) for name, type_ in zip(names, batch.schema.types, strict=True)}
        rows_here = _within(numbers, first, first + batch.num_rows)
        at_once = max(_MOST_CELLS // max(len(names), 1), 1)
        for begin in range(0, len(rows_here), at_once):
            check()
            some = rows_here[begin : begin + at_once]
            places = pa.array([row - first for row in some], pa.int64())
            columns = [_values(column, places) for column in batch.columns]
            for at, row in enumerate(some):
                yield (
                    row,
                    show({name: values[at] for name, values in zip(names, columns, strict=True)}, types),
                )


def _within(numbers: list[int], first: int, end: int) -> list[int]:
    return numbers[bisect_left(numbers, first) : bisect_left(numbers, end)]


def _values(column: pa.Array, places: pa.Array) -> list[Any]:
    """Of the chosen rows."""
    chosen = column.take(places)
    try:
        return list(chosen.to_pylist())
    except (UnicodeDecodeError, ArithmeticError, LookupError):
        return [_value(chosen[at : at + 1]) for at in range(len(chosen))]


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

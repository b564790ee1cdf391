"""Rows of Avro files (https://avro.apache.org/docs/1.12.0/specification/).

Only blocks are read that hold what is wanted. The head of each block says how many rows and bytes it has, so
the others are passed over. A file that is no Avro, or is damaged, is an UnreadableError.
"""

from __future__ import annotations

import bz2
import io
import json
import lzma
import zlib
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, TypeVar

import pyarrow as pa

from lineage_service.tracing.files.avro_values import AvroReader, Decoder, reader_of, type_names
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError

__all__ = ["read_all", "read_rows"]

_MAGIC, _SYNC = b"Obj\x01", 16
#: Of a head, and of a block: Avro writes blocks of 64 kB, and of one row where that is larger.
_MOST_BYTES = 1 << 28
_DAMAGED = "the file cannot be read as Avro ({}): put a whole copy in its place"

T = TypeVar("T")


def read_rows(
    files: FileSystems,
    path: str,
    rows: Collection[int],
    check: Check,
    show: Callable[[dict[str, Any], Mapping[str, str]], T],
) -> dict[int, T]:
    """The rows by their numbers, from 0; those that are not there are not. Raises UnreadableError.

    `show` makes of (values, types by Spark's names) what is kept of a row.
    """
    numbers = sorted(set(rows))
    with files.opened(path, at_length=False) as file, _readable():
        reader, codec, sync = _head(file)
        types = type_names(reader.schema)
        return {
            row: show(values, types) for row, values in _requested(file, reader, codec, sync, numbers, check)
        }


def read_all(files: FileSystems, path: str, check: Check) -> Iterator[dict[str, Any]]:
    """All rows, in order. Raises UnreadableError."""
    with files.opened(path, at_length=True) as file, _readable():
        reader, codec, sync = _head(file)
        for _, count, data in _blocks(file, sync, lambda first, count: True):
            check()
            decoder = Decoder(_unpacked(data, codec))
            for _ in range(count):
                yield reader.read(decoder)


@contextmanager
def _readable() -> Iterator[None]:
    """What goes wrong with the contents of a file in the block becomes an UnreadableError."""
    try:
        yield
    except (
        ValueError,
        LookupError,
        ArithmeticError,
        RecursionError,
        EOFError,
        zlib.error,
        lzma.LZMAError,
        pa.ArrowException,
    ) as error:
        said = " ".join(str(error).split())[:120] or type(error).__name__
        raise UnreadableError(_DAMAGED.format(said)) from None


def _head(file: BinaryIO) -> tuple[AvroReader, str, bytes]:
    """How rows are read, how blocks are compressed, and what stands behind each."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("it does not begin as one")
    meta: dict[str, bytes] = {}
    while count := _number(file):
        if count < 0:
            _number(file)  # the size of the part in bytes
        for _ in range(abs(count)):
            name = _bytes(file, _number(file)).decode()
            meta[name] = _bytes(file, _number(file))
    sync = _bytes(file, _SYNC)
    schema = json.loads(meta["avro.schema"])
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ValueError("its rows are no records")
    try:
        reader = reader_of(schema)
    except (TypeError, AttributeError):
        raise ValueError("its schema is none") from None
    return reader, meta.get("avro.codec", b"null").decode(), sync


def _requested(
    file: BinaryIO, reader: AvroReader, codec: str, sync: bytes, numbers: list[int], check: Check
) -> Iterator[tuple[int, dict[str, Any]]]:
    if not numbers:
        return

    def rows_in(first: int, count: int) -> list[int]:
        return numbers[bisect_left(numbers, first) : bisect_left(numbers, first + count)]

    for first, count, data in _blocks(file, sync, lambda first, count: bool(rows_in(first, count))):
        in_block = rows_in(first, count)
        if in_block:
            check()
            decoder = Decoder(_unpacked(data, codec))
            requested = set(in_block)
            for row in range(first, in_block[-1] + 1):
                values = reader.read(decoder)
                if row in requested:
                    yield row, values
        if first + count > numbers[-1]:
            return


def _blocks(
    file: BinaryIO, sync: bytes, is_wanted: Callable[[int, int], bool]
) -> Iterator[tuple[int, int, bytes]]:
    """(number of the first row, how many there are, the block as it is stored), empty if it is not wanted."""
    first = 0
    while True:
        try:
            count = _number(file)
        except EOFError:
            return
        size = _number(file)
        if count < 0 or not 0 <= size <= _MOST_BYTES:
            raise ValueError(f"a block of {count} rows in {size} bytes")
        data = b""
        if is_wanted(first, count):
            data = _bytes(file, size)
        else:
            file.seek(size, io.SEEK_CUR)
        if _bytes(file, _SYNC) != sync:
            raise ValueError("a block that does not end as one")
        yield first, count, data
        first += count


def _unpacked(data: bytes, codec: str) -> bytes:
    if codec == "null":
        return data
    if codec == "deflate":
        unpacker = zlib.decompressobj(-15)
        unpacked = unpacker.decompress(data, _MOST_BYTES)
        if unpacker.unconsumed_tail:
            raise ValueError("a block that is too large")
        return unpacked
    if codec == "snappy":  # and four bytes of a checksum
        size = _length_of_snappy(data)
        return bytes(pa.Codec("snappy").decompress(data[:-4], size))
    if codec == "zstandard":
        with pa.input_stream(pa.BufferReader(data), compression="zstd") as stream:
            return bytes(stream.read(_MOST_BYTES))
    if codec == "bzip2":
        return bz2.BZ2Decompressor().decompress(data, _MOST_BYTES)
    if codec == "xz":
        return lzma.LZMADecompressor().decompress(data, _MOST_BYTES)
    raise ValueError(f"its codec {codec[:40]!r} is not known")


def _length_of_snappy(data: bytes) -> int:
    """Of the unpacked bytes: seven bits in each byte, the last ones first."""
    size = 0
    for at, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << 7 * at
        if byte < 0x80:
            break
    if size > _MOST_BYTES:
        raise ValueError("a block that is too large")
    return size


def _number(file: BinaryIO) -> int:
    bits = 0
    for shift in range(0, 70, 7):
        byte = file.read(1)
        if not byte:
            raise EOFError("it ends too early")
        bits |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            break
    return bits >> 1 ^ -(bits & 1)


def _bytes(file: BinaryIO, size: int) -> bytes:
    if not 0 <= size <= _MOST_BYTES:
        raise ValueError(f"a piece of {size} bytes")
    data = file.read(size)
    if len(data) < size:
        raise EOFError("it ends too early")
    return data

"""Copies some lines of a file as they are: their bytes, row ends and compression.

Lines end as those of `row_ends`. Knows nothing of where the copy is.
"""

from __future__ import annotations

import bz2
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any, BinaryIO, Protocol

from lineage_service.tracing.files.chosen_rows import ChosenRows
from lineage_service.tracing.files.decompression import Check, FileBytes, Reader
from lineage_service.tracing.files.file_systems import FileSystems
from lineage_service.tracing.files.row_ends import RowEnds

__all__ = ["compressed", "copy_lines"]

_PIECE = 1 << 20


class Writer(Protocol):
    def write(self, data: bytes, /) -> Any: ...


def copy_lines(files: FileSystems, path: str, target: BinaryIO, chosen: ChosenRows, check: Check) -> int:
    """How many lines were copied. Raises UnreadableError."""
    row = copied = 0
    is_open = False  # the last line has no end so far, and is copied
    with FileBytes(path, files).reading(0, check, at_length=True) as reader, compressed(path, target) as copy:
        for data in _pieces(reader, check):
            # Segment n is a part of row `row` + n. The last one is what begins behind the last end.
            bounds = [0, *RowEnds(data).positions, len(data)]
            ended = row + len(bounds) - 2
            for first, end in chosen.within(row, ended + 1):
                copy.write(data[bounds[first - row] : bounds[end - row]])
                copied += min(end, ended) - min(first, ended)
            if ended > row or not is_open:
                is_open = bounds[-1] > bounds[-2] and any(chosen.within(ended, ended + 1))
            row = ended
    return copied + is_open


def _pieces(reader: Reader, check: Check) -> Iterator[bytes]:
    """Not cut between the CR and the LF of one row end."""
    rest = b""
    while chunk := reader.read(_PIECE):
        check()
        data = rest + chunk
        rest = b"\r" if data.endswith(b"\r") else b""
        data = data[: len(data) - len(rest)]
        if data:
            yield data
    if rest:
        yield rest


@contextmanager
def compressed(path: str, target: BinaryIO) -> Iterator[Writer]:
    """Writes as the ending of a file says."""
    ending = PurePosixPath(path).suffix
    if ending == ".gz":
        with gzip.GzipFile("", "wb", fileobj=target, mtime=0) as file:
            yield file
    elif ending == ".bz2":
        with bz2.BZ2File(target, "wb") as bz2_file:
            yield bz2_file
    elif ending == ".zst":
        import pyarrow as pa

        with pa.CompressedOutputStream(pa.PythonFile(target, "w"), "zstd") as stream:
            yield stream
    elif ending == ".deflate":
        deflating = _Deflating(target)
        yield deflating
        deflating.finish()
    else:
        yield target


class _Deflating:
    """RFC 1950: Hadoop's DefaultCodec."""

    def __init__(self, target: BinaryIO) -> None:
        self._target, self._compressor = target, zlib.compressobj()

    def write(self, data: bytes) -> None:
        self._target.write(self._compressor.compress(data))

    def finish(self) -> None:
        self._target.write(self._compressor.flush())

"""The bytes of one file from any offset on, decompressed as Spark would by the file's ending.

A plain file is read from the offset. gzip cannot be, so a few states of the decompressor are cached on the
way (at most 8, of some 50 KB). Of bzip2 and Zstandard none are: they are read from their start each time.
"""

from __future__ import annotations

import bz2
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any, BinaryIO, Protocol

from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError

__all__ = ["Check", "FileBytes", "Reader", "is_cut", "unlimited"]

Check = Callable[[], None]
"""Is called now and then while much is read, and ends it by what it raises."""

_PIECE = 1 << 16
_RESTARTS = 8
_FIRST_SPACING = 1 << 25
_WBITS = {".gz": 31, ".deflate": 15}  # RFC 1952, and 1950: Hadoop's DefaultCodec
_FRAMED = frozenset((".snappy", ".lz4", ".lzo", ".lzo_deflate"))
_CUT_OFF = (
    "the file cannot be read to its end (its {} data is cut off or damaged): put a whole copy in its place"
)


class Reader(Protocol):
    def read(self, size: int, /) -> bytes:
        """At most so many bytes; none at the end."""
        ...


def unlimited() -> None:
    """The check of what has no time budget."""


def is_cut(path: str) -> bool:
    """May a file be several partitions of Spark, each from one byte of it to another? Else it is one."""
    ending = PurePosixPath(path).suffix
    return ending not in _WBITS and ending not in _FRAMED and ending != ".zst"


class FileBytes:
    """One state of one file. Threads may share it."""

    def __init__(self, path: str, files: FileSystems) -> None:
        self.path = path
        self._files = files
        self._ending = PurePosixPath(path).suffix
        self._lock = threading.Lock()
        self._spacing = _FIRST_SPACING
        self._restarts: list[_Inflating] = []

    @property
    def is_plain(self) -> bool:
        """Can it be read from any offset at once?"""
        return self._ending not in _WBITS and self._ending not in (".bz2", ".zst")

    @contextmanager
    def reading(self, offset: int, check: Check, *, at_length: bool = False) -> Iterator[Reader]:
        """Raises UnreadableError, in the block too."""
        if self._ending in _FRAMED:
            raise UnreadableError(
                f"the file cannot be read (this service does not decompress {self._ending}): look at it with "
                "Spark"
            )
        at_length = at_length or not self.is_plain
        with self._files.opened(self.path, at_length=at_length) as file:
            try:
                if self._ending in _WBITS:
                    yield self._inflating(file, offset, check)
                elif self._ending == ".bz2":
                    with bz2.open(file) as stream:
                        yield _skipped(_Single(stream), offset, check)
                elif self._ending == ".zst":
                    import pyarrow as pa

                    with pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd") as stream:
                        yield _skipped(stream, offset, check)
                else:
                    file.seek(offset)
                    yield file
            except (EOFError, zlib.error) as error:
                raise UnreadableError(_CUT_OFF.format(self._ending)) from error
            except OSError as error:
                # bzip2's and Zstandard's own errors have no number; those of file systems do.
                if self.is_plain or error.errno is not None:
                    raise
                raise UnreadableError(_CUT_OFF.format(self._ending)) from error

    def _inflating(self, file: BinaryIO, offset: int, check: Check) -> Reader:
        with self._lock:
            before = [restart for restart in self._restarts if restart.position <= offset]
            begin = max(before, key=lambda restart: restart.position) if before else None
        stream = begin.again(file) if begin is not None else _Inflating(file, _WBITS[self._ending])
        stream.passing = self._keep
        reader: Reader = _skipped(stream, offset, check)
        return reader

    def _keep(self, at: _Inflating) -> None:
        """A state to begin from again, if none is near."""
        with self._lock:
            last = max((restart.position for restart in self._restarts), default=0)
            if at.position < last + self._spacing:
                return
            self._restarts.append(at.again(None))
            if len(self._restarts) > _RESTARTS:
                del self._restarts[::2]
                self._spacing *= 2


class _Inflating:
    """A stream of zlib's, of several members too; its state can be copied."""

    def __init__(self, file: Any, wbits: int) -> None:
        self.position = 0  # of decompressed bytes that were read
        self.passing: Callable[[_Inflating], None] = _nothing
        self._file, self._wbits = file, wbits
        self._decompressor = zlib.decompressobj(wbits)
        self._input = b""
        self._taken = 0  # compressed bytes that the decompressor has
        self._is_between = True  # two members, or before the first

    def again(self, file: Any) -> _Inflating:
        """The same state over another opening of the file."""
        copy = _Inflating(file, self._wbits)
        copy.position, copy._taken, copy._is_between = self.position, self._taken, self._is_between
        copy._decompressor = self._decompressor.copy()
        if file is not None:
            file.seek(copy._taken)
        return copy

    def read(self, size: int) -> bytes:
        """Raises EOFError, zlib.error."""
        while True:
            self._input = self._input or self._file.read(_PIECE)
            is_read = not self._input
            if is_read and self._is_between:
                return b""
            if self._is_between and self._taken:  # zeros may stand between and behind members
                stripped = self._input.lstrip(b"\0")
                self._taken += len(self._input) - len(stripped)
                self._input = stripped
                if not stripped:
                    continue
            size_before = len(self._input)
            data = self._decompressor.decompress(self._input, size)
            is_end = self._decompressor.eof
            self._input = self._decompressor.unused_data if is_end else self._decompressor.unconsumed_tail
            self._taken += size_before - len(self._input)
            self._is_between = is_end
            if is_end:
                self._decompressor = zlib.decompressobj(self._wbits)
            self.position += len(data)
            if data:
                self.passing(self)
                return data
            if is_read and not is_end:
                raise EOFError


class _Single:
    """Gives what one read of a buffered stream gave, so that an error behind it does not take that away."""

    def __init__(self, stream: Any) -> None:
        self.read = stream.read1


def _nothing(_: _Inflating) -> None:
    pass


def _skipped(stream: Any, offset: int, check: Check) -> Any:
    """The stream at an offset of its decompressed bytes, or at its end."""
    at = stream.position if isinstance(stream, _Inflating) else 0
    while at < offset:
        check()
        data = stream.read(min(_PIECE, offset - at))
        if not data:
            break
        at += len(data)
    return stream

"""Where the splits of a bzip2 file begin in its text: Hadoop's splits are the partitions of Spark.

Hadoop splits such a file at any compressed byte. The text of a split begins with the first block whose mark,
48 bits that may begin at any bit, stands at that byte or behind it (BZip2Codec and CBZip2InputStream of
Hadoop). The first block is always the first split's.
"""

from __future__ import annotations

import bz2
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError

__all__ = ["text_starts"]

_MARK = 0x314159265359
_MARK_BITS = 48
_PIECE = 1 << 20
_ALL = 1 << 62
#: (shift, the bytes that a mark fills whole which begins so many bits behind the first of a byte)
_SHIFTED = tuple(
    (
        shift,
        ((_MARK << (8 - shift)) & ((1 << 48) - 1)).to_bytes(6, "big")[:5]
        if shift
        else _MARK.to_bytes(6, "big"),
    )
    for shift in range(8)
)


def text_starts(path: str, starts: Iterable[int], files: FileSystems, check: Check) -> dict[int, int]:
    """For each compressed byte that a split starts at: where its text begins, behind it all if it has none.

    Reads and decompresses all before the last of them. Raises UnreadableError.
    """
    lengths: dict[int, int] = {}
    with files.opened(path, at_length=True) as file:
        marks = {start: _mark_from(file, start, check) for start in sorted(starts)}
        file.seek(0)
        text = _Text(file, check)
        for start, mark in marks.items():
            # All bits of the blocks before, and some of the mark: these blocks come out whole, and no more.
            lengths[start] = text.length_of(_ALL if mark is None else -(-mark // 8))
    return lengths


def _mark_from(file: BinaryIO, start: int, check: Check) -> int | None:
    """The bit of the first mark behind the first one that stands at `start` or behind it."""
    base = max(start, 5)
    file.seek(base)
    window = b""
    while piece := file.read(_PIECE):
        window += piece
        first = min(_marks_in(window), default=None)
        if first is not None:
            return 8 * base + first
        rest = window[-6:]
        base += len(window) - len(rest)
        window = rest
        check()
    return None


def _marks_in(window: bytes) -> Iterator[int]:
    """For each shift, the bit of its first mark that is whole in the bytes."""
    for shift, inner in _SHIFTED:
        at = window.find(inner)
        while at >= 0:
            first = at if not shift else at - 1
            if first >= 0 and first + (7 if shift else 6) <= len(window):
                bits = int.from_bytes(window[first : first + (7 if shift else 6)], "big")
                if (bits >> ((8 - shift) % 8)) & ((1 << _MARK_BITS) - 1) == _MARK:
                    yield 8 * first + shift
                    break
            at = window.find(inner, at + 1)


class _Text:
    """The text of a bzip2 file, counted while it is read."""

    def __init__(self, file: BinaryIO, check: Check) -> None:
        self._file, self._check = file, check
        self._decompressor = bz2.BZ2Decompressor()
        self._read = self._length = 0

    def length_of(self, compressed: int) -> int:
        """How many bytes of text come out of so many; of as many as before, or more."""
        while self._read < compressed:
            self._check()
            data = self._file.read(min(_PIECE, compressed - self._read))
            if not data:
                break
            self._read += len(data)
            self._feed(data)
        return self._length

    def _feed(self, data: bytes) -> None:
        try:
            while data:
                text = self._decompressor.decompress(data)
                while text:  # what has no room in one call comes with the next
                    self._length += len(text)
                    text = b"" if self._decompressor.eof else self._decompressor.decompress(b"")
                data = b""
                if self._decompressor.eof:
                    data = self._decompressor.unused_data
                    self._decompressor = bz2.BZ2Decompressor()
        except OSError as error:
            raise UnreadableError(
                "the file cannot be read to its end (its .bz2 data is cut off or damaged): put a whole copy "
                "in its place"
            ) from error

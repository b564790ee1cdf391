"""The rows that a deletion vector of Iceberg removes: a bitmap in a piece of a Puffin file.

https://iceberg.apache.org/puffin-spec/#deletion-vector-v1-blob-type and
https://github.com/RoaringBitmap/RoaringFormatSpec. Damaged ones are a ValueError.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
import numpy.typing as npt

__all__ = ["rows_of_vector"]

_MAGIC = b"\xd1\xd3\x39\x64"
_WITH_RUNS, _WITHOUT_RUNS = 12347, 12346
#: Bitmaps with fewer containers than this have no offsets of them, if they have runs.
_FEW = 4
#: An array of values up to this many, else a bitmap.
_MOST_IN_ARRAY = 4096
_BITMAP_BYTES = 8192

Numbers = npt.NDArray[np.int64]


def rows_of_vector(blob: bytes) -> Numbers:
    """Ascending. Raises ValueError."""
    if len(blob) < 20 or blob[4:8] != _MAGIC:
        raise ValueError("a deletion vector that does not begin as one")
    [size], [checksum] = struct.unpack(">I", blob[:4]), struct.unpack(">I", blob[-4:])
    checked = blob[4:-4]
    if size != len(checked) or zlib.crc32(checked) != checksum:
        raise ValueError("a deletion vector whose checksum is another one")
    reader = _Reader(checked[len(_MAGIC) :])
    parts = []
    for _ in range(reader.number("<Q")):
        high = reader.number("<I") << 32
        parts += [numbers + high for numbers in _bitmap(reader)]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def raw(self, size: int) -> bytes:
        piece = self._data[self._at : self._at + size]
        if len(piece) < size:
            raise ValueError("a deletion vector that ends too early")
        self._at += size
        return piece

    def number(self, form: str) -> int:
        return int(struct.unpack(form, self.raw(struct.calcsize(form)))[0])

    def shorts(self, count: int) -> Numbers:
        return np.frombuffer(self.raw(2 * count), "<u2").astype(np.int64)


def _bitmap(reader: _Reader) -> list[Numbers]:
    """The values of a bitmap of 32 bits, container by container."""
    cookie = reader.number("<I")
    has_runs = cookie & 0xFFFF == _WITH_RUNS
    if not has_runs and cookie != _WITHOUT_RUNS:
        raise ValueError(f"a deletion vector of an unknown kind ({cookie})")
    count = (cookie >> 16) + 1 if has_runs else reader.number("<I")
    of_runs = np.zeros(count, bool)
    if has_runs:
        flags = np.frombuffer(reader.raw((count + 7) // 8), np.uint8)
        of_runs = np.unpackbits(flags, bitorder="little")[:count].astype(bool)
    heads = reader.shorts(2 * count).reshape(-1, 2)
    if not has_runs or count >= _FEW:
        reader.raw(4 * count)  # where each container begins
    return [
        (int(key) << 16) + _container(reader, int(less_one) + 1, is_run=bool(of_runs[at]))
        for at, (key, less_one) in enumerate(heads)
    ]


def _container(reader: _Reader, size: int, *, is_run: bool) -> Numbers:
    if is_run:
        runs = reader.shorts(2 * int(reader.shorts(1)[0])).reshape(-1, 2)
        pieces = [np.arange(first, first + length + 1, dtype=np.int64) for first, length in runs]
        return np.concatenate(pieces) if pieces else np.empty(0, np.int64)
    if size <= _MOST_IN_ARRAY:
        return reader.shorts(size)
    bits = np.unpackbits(np.frombuffer(reader.raw(_BITMAP_BYTES), np.uint8), bitorder="little")
    return np.flatnonzero(bits).astype(np.int64)

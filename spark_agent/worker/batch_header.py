"""The batch header: 16 bytes before a pickled batch that goes from one task run to another through the JVM.

It names the task run that wrote the batch, and the written position of its first record. So each record that
is read is known by its run and its position, in whatever order batches come. Where values are sampled, one
bit for each record follows: is it on a sampled path? Knows nothing of serializers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

HEADER = struct.Struct("<QQ")
#: Stands before a batch that no captured run wrote, or whose records could not be counted.
UNCAPTURED = HEADER.pack(0, 0)
#: A run number with this bit: the header is followed by the number of bytes of its bits, and the bits.
_HAS_BITS = 1 << 63
_BYTES = struct.Struct("<I")


class Piece(NamedTuple):
    """A batch that another run wrote: so many records of that run, from position `first` on."""

    run: int
    first: int
    records: int
    bits: bytes | None = None  # which of them are on a sampled path


class BatchHeader(NamedTuple):
    """What stands before a batch, and where the batch begins behind it."""

    run: int  # 0: it did not capture
    first: int
    bits: bytes | None
    size: int


def pack(run: int, first: int, bits: bytes | None = None) -> bytes:
    if bits is None:
        return HEADER.pack(run, first)
    return HEADER.pack(run | _HAS_BITS, first) + _BYTES.pack(len(bits)) + bits


def unpack(batch: bytes) -> BatchHeader:
    run, first = HEADER.unpack_from(batch)
    if run < _HAS_BITS:
        return BatchHeader(run, first, None, HEADER.size)
    (count,) = _BYTES.unpack_from(batch, HEADER.size)
    start = HEADER.size + _BYTES.size
    return BatchHeader(run & ~_HAS_BITS, first, batch[start : start + count], start + count)


def has_bit(bits: bytes, index: int) -> bool:
    return bool(bits[index >> 3] >> (index & 7) & 1)


def pack_bits(are_on: Iterable[bool]) -> bytes:
    bits = bytearray()
    for index, is_on in enumerate(are_on):
        if not index & 7:
            bits.append(0)
        bits[-1] |= is_on << (index & 7)
    return bytes(bits)

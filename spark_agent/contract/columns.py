"""How the columns of a block are written as bytes: a part of the wire contract, behind its door `contract`.

An integer column is a little-endian unsigned array in the narrowest width that holds it, its bytes laid out
plane by plane (all lowest bytes first), ascending columns as differences. Both make what the producer's
compression sees repeat itself. Decoding checks every count and width before it takes memory. Knows nothing of
texts, blocks, relations or versions.
"""

from __future__ import annotations

import itertools
import sys
from array import array
from collections.abc import Sequence

_TYPECODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
_LITTLE = sys.byteorder == "little"


def encode_integers(values: Sequence[int]) -> tuple[bytes, int, bool]:
    """(bytes, width, are they differences) of a column of numbers from 0 to 2**63 - 1."""
    if not len(values):
        return b"", 1, False
    packed = _packed(values)
    item, raw = packed.itemsize, _little_endian(packed)
    head = packed[:64].tolist()  # shows most columns that descend, for less than the whole subtraction
    steps = _steps(raw, item) if len(head) > 1 and head == sorted(head) else None
    if steps is not None:
        raw = steps
    # Planes are taken from the top while they are empty: what is left is the narrowest width.
    planes = [raw[plane::item] for plane in range(item)]
    width = item
    while width > 1 and not any(map(_is_not_zero, planes[width // 2 : width])):
        width //= 2
    return b"".join(planes[:width]), width, steps is not None


def _packed(values: Sequence[int]) -> array[int]:
    """As an array of 4 or 8 bytes a value; array('I') from a list is twice as fast as the other widths."""
    if isinstance(values, array) and values.typecode == _TYPECODES[values.itemsize]:
        return values if values.itemsize >= 4 else array("I", values)
    try:
        return array("I", values)
    except OverflowError:
        return array("Q", values)


def _little_endian(packed: array[int]) -> bytes:
    if not _LITTLE:
        packed = packed[:]
        packed.byteswap()
    return packed.tobytes()


def _steps(raw: bytes, item: int) -> bytes | None:
    """Each number of `raw` minus the one before, the first as it is; None if the numbers descend anywhere.

    One subtraction of the whole column, as a single large integer, from itself moved by one place: about
    10 ns a number, against 50 in a loop. Where a number is smaller than the one before, the subtraction
    borrows from the next place, and a borrow shows as a flipped lowest bit there.
    """
    bits = 8 * item
    column = int.from_bytes(raw, "little")
    before = (column << bits) & ((1 << 8 * len(raw)) - 1)
    steps = column - before
    if steps < 0:
        return None
    lowest_bits = int.from_bytes((b"\1" + bytes(item - 1)) * (len(raw) // item), "little")
    if (steps ^ column ^ before) & lowest_bits:
        return None
    return steps.to_bytes(len(raw), "little")


def _is_not_zero(plane: bytes) -> bool:
    return plane != bytes(len(plane))


def decode_integers(payload: bytes, count: int, width: object, is_delta: bool) -> Sequence[int]:
    """The `count` numbers of a column; what its header says of it is checked first. Raises ValueError."""
    if not isinstance(width, int) or width not in _TYPECODES or len(payload) != count * width:
        raise ValueError(f"column of {count} values in {len(payload)} bytes has width {width!r}")
    raw = bytearray(len(payload))
    for plane in range(width):
        raw[plane::width] = payload[plane * count : (plane + 1) * count]
    if width == 8 and not is_delta and max(raw[7::8], default=0) >= 0x80:
        raise ValueError("column holds a number beyond 2**63 - 1")
    values = array(_TYPECODES[width])
    values.frombytes(bytes(raw))
    if not _LITTLE:
        values.byteswap()
    if not is_delta:
        return values
    try:
        absolute = array("Q", itertools.accumulate(values))
    except OverflowError:
        raise ValueError("ascending column passes 2**63") from None
    if absolute and absolute[-1] >= 1 << 63:
        raise ValueError("ascending column passes 2**63")
    return absolute

"""Digests of records: 63 bits that say whether a record of one turn of a loop was there the turn before.

Equal digests mean values of the same types that are written alike, all the way down: 1 is not 1.0, a Decimal
of 1.0 is not one of 1.00, and dictionaries have their order. They are salted for each application, and the
salt is in no message. What is of no known plain type has no digest, nor has what consists of very many parts.
No code of the user's is run to make one. Never raises into the job.
"""

from __future__ import annotations

import marshal
import os
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator
from datetime import timezone
from typing import TYPE_CHECKING, Any

from spark_agent import contract

if TYPE_CHECKING:
    from spark_agent.worker.block_sink import BlockSink

#: Digests in a block: with their positions they stay below the block limit.
DIGESTS_IN_BLOCK = 50_000
#: A record of more parts has none: shared parts are written each time, and may be very many.
MAX_PARTS = 10_000
#: Without references: how often an object is referred to does not show.
_MARSHAL_VERSION = 2
_MASK = (1 << 63) - 1

_ATOMS = frozenset((bool, bytes, float, int, str, type(None)))
#: Values that their texts say all of, by where their class is: the modules need not be imported.
_BY_TEXT = frozenset(
    (
        ("builtins", "complex"),
        ("datetime", "date"),
        ("datetime", "timedelta"),
        ("decimal", "Decimal"),
        ("fractions", "Fraction"),
        ("uuid", "UUID"),
    )
)
_TIMES = frozenset((("datetime", "datetime"), ("datetime", "time")))
_ZONES = frozenset((type(None), timezone))
_ROW = ("pyspark.sql.types", "Row")


class _Unknown(Exception):
    """A value of a type whose contents are not known."""


def digester(salt: bytes, *, is_hashed: bool | None = None) -> Callable[[Any], int | None]:
    """A function that gives the digest of a record; None of one that has none.

    `is_hashed`: by Python's hash of bytes, a third of the time; None: if all workers have the same.
    """
    dumps, version = marshal.dumps, _MARSHAL_VERSION
    bits = _hashed(salt) if is_hashed or (is_hashed is None and workers_share_hash()) else _keyed(salt)
    if bits is None:
        return _none

    def digest(record: Any) -> int | None:
        try:
            return bits(dumps(record if _is_plain(record) else _Parts().plain(record), version))
        except Exception:  # noqa: BLE001 - of unknown type, or too many parts
            return None

    return digest


def workers_share_hash() -> bool:
    """Does every Python of the application hash bytes alike, by SipHash? Spark gives them one seed."""
    seed, algorithm = os.environ.get("PYTHONHASHSEED", ""), sys.hash_info
    return seed.isdecimal() and algorithm.algorithm.startswith("siphash") and algorithm.width == 64


def _hashed(salt: bytes) -> Callable[[bytes], int]:
    return lambda written: hash(salt + written + salt) & _MASK


def _keyed(salt: bytes) -> Callable[[bytes], int] | None:
    try:
        from hashlib import blake2b
    except ImportError:  # a Python that was built without it
        return None
    begun = blake2b(digest_size=8, key=salt).copy

    def bits(written: bytes) -> int:
        state = begun()
        state.update(written)
        return int.from_bytes(state.digest(), "little") & _MASK

    return bits


def _is_plain(record: Any) -> bool:
    """Is it an atom, or a tuple of atoms, tuples and lists of atoms? Then marshal writes it in one way."""
    if type(record) is not tuple:
        return type(record) in _ATOMS
    if _ATOMS.issuperset(map(type, record)):
        return len(record) <= MAX_PARTS
    left = MAX_PARTS - len(record)
    for part in record:
        kind = type(part)
        if kind is tuple or kind is list:
            left -= len(part)
            if left < 0 or not _ATOMS.issuperset(map(type, part)):
                return False
        elif kind not in _ATOMS:
            return False
    return left >= 0


class _Parts:
    """Brings one record into a form that marshal writes in one way, while it has few parts."""

    def __init__(self) -> None:
        self._left = MAX_PARTS

    def plain(self, value: Any) -> Any:
        """`value`; what marshal does not write so begins with `...`, which no value has."""
        self._left -= 1
        if self._left < 0:
            raise _Unknown
        kind = type(value)
        if kind in _ATOMS:
            return value
        if kind is tuple or kind is list:
            return kind(map(self.plain, value))
        if kind is dict:
            return (..., "dict", [(self.plain(key), self.plain(one)) for key, one in value.items()])
        if kind is set or kind is frozenset:
            return (..., kind.__name__, sorted(map(self._written, value)))
        return (..., *self._of_class(value, kind))

    def _written(self, value: Any) -> bytes:
        return marshal.dumps(self.plain(value), _MARSHAL_VERSION)

    def _of_class(self, value: Any, kind: type) -> tuple[Any, ...]:
        if type(kind) is not type:  # whose class may run code of its own
            raise _Unknown
        name = (kind.__module__, kind.__qualname__)
        if name in _BY_TEXT or (name in _TIMES and type(value.tzinfo) in _ZONES):
            return (*name, repr(value))
        parts = tuple(map(self.plain, tuple.__iter__(value))) if issubclass(kind, tuple) else ()
        if name == _ROW:
            return (*name, self.plain(list(getattr(value, "__fields__", ()))), *parts)
        if kind.__bases__ == (tuple,) and not kind.__dictoffset__:  # a named tuple
            return (*name, *parts)
        raise _Unknown


def _none(_record: Any) -> None:
    return None


class DigestStream:
    """The digests of the outputs of one node, in their order, cut into blocks."""

    def __init__(self, sink: BlockSink, node: int, salt: bytes) -> None:
        self._sink, self._node, self._digest = sink, node, digester(salt)
        self._digests: list[int | None] = []
        self._shipped = 0

    def through(self, records: Iterable[Any]) -> Iterator[Any]:
        """The records, each with its digest noted as it passes."""
        digests, digest, ship = self._digests, self._digest, self._ship

        def note(record: Any) -> Any:
            nonlocal digest
            digests.append(digest(record))
            if len(digests) >= DIGESTS_IN_BLOCK and not ship():
                digest = _none  # nor will others have any
            return record

        return map(note, records)

    def _ship(self) -> bool:
        """Were there any digests to send?"""
        digests, first = self._digests, self._shipped
        self._shipped += len(digests)
        places = [place for place, digest in enumerate(digests) if digest is not None]
        column = array("Q", [digest for digest in digests if digest is not None])
        if len(places) < len(digests):
            columns = {"digest": column, "out": [first + place for place in places]}
            first = 0
        else:
            columns = {"digest": column}
        digests.clear()
        if places:
            self._sink.emit(self._node, contract.DIGESTS, 0, first, columns)
        return bool(places)

    def close(self) -> None:
        self._ship()

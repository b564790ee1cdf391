"""What compiled classes of Java have and use (The Java Virtual Machine Specification, chapter 4)."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

#: Of a class, a field, and methods of classes and interfaces, in a pool of constants.
_CLASS, _USES = 7, (9, 10, 11)
_TEXT = 1
#: Kind of constant -> its bytes behind the kind, where all of a kind have as many.
_SIZES = {
    3: 4,
    4: 4,
    5: 8,
    6: 8,
    7: 2,
    8: 2,
    9: 4,
    10: 4,
    11: 4,
    12: 4,
    15: 3,
    16: 2,
    17: 4,
    18: 4,
    19: 2,
    20: 2,
}
#: Those that take two places.
_WIDE = (5, 6)
_STATIC, _ABSTRACT = 0x0008, 0x0400
_OF_JAVA = ("java/", "javax/")
_OF_ANY_OBJECT = ("equals", "hashCode", "toString")

Member = tuple[str, str]
"""The name and the descriptor of a field or a method."""


@dataclass(frozen=True)
class ClassFile:
    """One class. `above`: its superclass, then its interfaces. `uses`: a class, or a member of one."""

    name: str
    is_abstract: bool
    above: tuple[str, ...]
    members: frozenset[Member]
    abstract: frozenset[Member]
    uses: frozenset[tuple[str, Member | None]]


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 8  # behind the magic number and the version

    def take(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self, size: int = 2) -> int:
        return int.from_bytes(self.take(size), "big")

    def numbers(self) -> list[int]:
        return [self.number() for _ in range(self.number())]


def parsed(data: bytes) -> ClassFile:
    reader = _Reader(data)
    pool = _pool(reader)

    def text(index: int) -> str:
        return pool[index][1].decode("utf-8", "replace")

    def class_name(index: int) -> str:
        return text(_first(pool[index][1]))

    access, own, above = reader.number(), reader.number(), reader.number()
    names = [*([above] if above else []), *reader.numbers()]
    members: dict[Member, int] = {}
    for _ in ("fields", "methods"):
        for flags, name, descriptor in _members(reader):
            members[text(name), text(descriptor)] = flags
    uses: set[tuple[str, Member | None]] = set()
    for kind, content in pool.values():
        if kind == _CLASS:
            uses.add((text(_first(content)), None))
        elif kind in _USES:
            owner, signature = struct.unpack(">HH", content)
            name, descriptor = struct.unpack(">HH", pool[signature][1])
            uses.add((class_name(owner), (text(name), text(descriptor))))
    return ClassFile(
        class_name(own),
        bool(access & _ABSTRACT),
        tuple(map(class_name, names)),
        frozenset(members),
        frozenset(member for member, flags in members.items() if flags & _ABSTRACT),
        frozenset(use for use in uses if not use[0].startswith("[")),
    )


def _pool(reader: _Reader) -> dict[int, tuple[int, bytes]]:
    pool: dict[int, tuple[int, bytes]] = {}
    count, index = reader.number(), 1
    while index < count:
        kind = reader.number(1)
        pool[index] = kind, reader.take(reader.number() if kind == _TEXT else _SIZES[kind])
        index += 2 if kind in _WIDE else 1
    return pool


def _first(content: bytes) -> int:
    return int.from_bytes(content[:2], "big")


def _members(reader: _Reader) -> Iterator[tuple[int, int, int]]:
    for _ in range(reader.number()):
        flags, name, descriptor = reader.number(), reader.number(), reader.number()
        for _ in range(reader.number()):
            reader.take(2)
            reader.take(reader.number(4))
        yield flags, name, descriptor


class ClassPath:
    """The classes of some jars, without those of Java itself, which has whatever is asked for."""

    def __init__(self, jars: Iterable[Path]) -> None:
        self._jar_of: dict[str, zipfile.ZipFile] = {}
        for jar in jars:
            archive = zipfile.ZipFile(jar)
            for name in archive.namelist():
                self._jar_of.setdefault(name, archive)
        self.of = cache(self._of)

    def _of(self, name: str) -> ClassFile | None:
        archive = self._jar_of.get(f"{name}.class")
        return None if archive is None else parsed(archive.read(f"{name}.class"))

    def with_ancestors(self, name: str) -> list[str]:
        """A class, and all classes and interfaces above it."""
        names = [name]
        for known in names:
            found = self.of(known)
            names += [above for above in (found.above if found else ()) if above not in names]
        return names

    def problems(self, name: str) -> list[str]:
        """What a class uses that is not there, and what it would have to implement."""
        found = self.of(name)
        assert found is not None
        unknown = [use for use in found.uses if not self._has(*use)]
        return [f"{name} uses {use}" for use in unknown] + [
            f"{name} lacks {member}" for member in ([] if found.is_abstract else self._lacking(name))
        ]

    def _has(self, owner: str, member: Member | None) -> bool:
        if owner.startswith(_OF_JAVA):
            return True
        if self.of(owner) is None or member is None:
            return self.of(owner) is not None
        for name in self.with_ancestors(owner):
            found = self.of(name)
            if name.startswith(_OF_JAVA) and name != "java/lang/Object":
                return True
            if found is not None and member in found.members:
                return True
        return member[0] in ("getClass", "clone", "ordinal", "<init>", *_OF_ANY_OBJECT)

    def _lacking(self, name: str) -> list[Member]:
        above = [found for found in map(self.of, self.with_ancestors(name)) if found is not None]
        implemented = {member for found in above for member in found.members - found.abstract}
        abstract = {member for found in above for member in found.abstract}
        return sorted(member for member in abstract - implemented if member[0] not in _OF_ANY_OBJECT)

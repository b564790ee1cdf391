"""What the tasks of queries told of the blocks that their rows came from, and what a trace asks of it.

Promises to hold no more than `MOST_BYTES`: the bitmaps of the oldest queries go first.
"""

from __future__ import annotations

import base64
import struct
import threading
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Columns = tuple[int, ...]
"""The ids of the columns of a scan: what tells it from the others of a plan."""
#: The column of bitmaps in plans.
COLUMN = "lineage_blocks"
#: Of all bitmaps of an application, compressed; about a byte for each row.
MOST_BYTES = 256 << 20
#: Parts of the files of one scan: a trace gives them to each of its tasks.
_MOST_PARTS = 20_000


@dataclass(frozen=True)
class Wanted:
    """The blocks of a scan that a trace needs. Rows of parts that are not `known` are all needed."""

    scan: int
    bitmap: int
    known: frozenset[str]


@dataclass
class RowIndex:
    """Of one output. `scans` are the numbers of the scans whose blocks are in its bitmaps."""

    scans: Mapping[Columns, int]
    _parts: dict[int, set[str]] = field(default_factory=dict)
    _bitmaps: dict[int, str] = field(default_factory=dict)
    _rows: dict[str, list[tuple[int, int, int]]] = field(default_factory=dict)  # path -> (row, split, first)

    @property
    def size(self) -> int:
        return sum(map(len, self._bitmaps.values()))

    def read(self, scan: int, parts: Iterable[str]) -> None:
        """A task has read these parts of files."""
        if scan in self.scans.values():
            self._parts.setdefault(scan, set()).update(parts)

    def take(self, split: int, bitmaps: str) -> None:
        """The bitmaps of the rows of a partition, as RowBitmaps.java tells them."""
        self._bitmaps[split] = bitmaps

    def written(self, partitions: Iterable[Mapping[str, Any]]) -> None:
        """Which rows of its files the rows of the output's partitions are, as the contract tells it."""
        for each in partitions:
            parts = each.get("parts", [{**each, "first": 0, "row": 0}] if "path" in each else [])
            for part in parts:
                place = part.get("row", 0), each["split"], part["first"]
                self._rows.setdefault(part["path"], []).append(place)
        for places in self._rows.values():
            places.sort()

    def forget(self) -> None:
        self._bitmaps.clear()

    def wanted(self, path: str, row: int) -> dict[Columns, Wanted]:
        """The blocks that a row of a file came from, by the scans; {} where they are not known."""
        bitmap = self._bitmap(path, row)
        if bitmap is None:
            return {}
        parts = {number: frozenset(self._parts.get(number, ())) for number in self.scans.values()}
        return {
            columns: Wanted(number, bitmap, parts[number])
            for columns, number in self.scans.items()
            if len(parts[number]) <= _MOST_PARTS
        }

    def _bitmap(self, path: str, row: int) -> int | None:
        places = [each for each in self._rows.get(path, ()) if each[0] <= row]
        if not places:
            return None
        from_row, split, first = places[-1]
        told = self._bitmaps.get(split)
        if not told:
            return None
        at = 8 * (first + row - from_row)
        raw = zlib.decompress(base64.b64decode(told))
        return struct.unpack_from(">q", raw, at)[0] if at + 8 <= len(raw) else None


class RowIndexes:
    """Those of an application's queries, by the nodes of their outputs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._indexes: dict[int, RowIndex] = {}

    def begin(self, node: int, index: RowIndex) -> None:
        with self._lock:
            self._indexes[node] = index

    def of(self, node: int) -> RowIndex | None:
        return self._indexes.get(node)

    def forget(self, node: int) -> None:
        with self._lock:
            self._indexes.pop(node, None)

    def read(self, scan: int, parts: Iterable[str]) -> None:
        with self._lock:
            for each in reversed(self._indexes.values()):
                each.read(scan, parts)

    def take(self, node: int, split: int, bitmaps: str) -> None:
        with self._lock:
            if node in self._indexes:
                self._indexes[node].take(split, bitmaps)
            left = sum(each.size for each in self._indexes.values())
            for each in self._indexes.values():  # the oldest first
                if left <= MOST_BYTES:
                    break
                left -= each.size
                each.forget()

"""The text of physical rows of files: from row number to bytes and back.

Rows end as Spark's text input ends them: LF, CR LF, lone CR. Rows count from 0, header lines included. The
first question about a file counts its row ends once; what is kept is two numbers for each 64 KiB.
"""

from __future__ import annotations

import bz2
import gzip
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

_CHUNK = 1 << 16
#: A row's text is shown up to this many bytes.
MAX_ROW_BYTES = 100_000
_OPENERS = {".gz": gzip.open, ".bz2": bz2.open}


def open_rows(path: str) -> BinaryIO:
    """The file's bytes, decompressed as Spark would by the file's ending."""
    opener: Any = _OPENERS.get(Path(path).suffix, open)
    return cast(BinaryIO, opener(path, "rb"))


class RowIndex:
    """Where the rows of one file begin: the first row start of each chunk, found by one pass."""

    def __init__(self, path: str, chunk_bytes: int = _CHUNK) -> None:
        self.path = path
        self._rows, self._offsets = [0], [0]  # row number and byte offset of known row starts
        base = ends = 0
        is_open = False  # the last row has no end
        with open_rows(path) as file:
            for data in _without_cut_ends(file, chunk_bytes):
                first = _first_row_start(data)
                if first is not None:
                    self._rows.append(ends + 1)
                    self._offsets.append(base + first)
                ends += _row_ends(data)
                base += len(data)
                is_open = not data.endswith((b"\n", b"\r"))
        self.size = base
        self.count = ends + (1 if is_open else 0)

    def rows_starting_up_to(self, offset: int) -> int:
        """How many rows begin at a byte from 0 to `offset`, both included."""
        if offset >= self.size:
            return self.count
        at = bisect_right(self._offsets, offset) - 1
        length = offset - self._offsets[at]
        with open_rows(self.path) as file:
            file.seek(self._offsets[at])
            data = file.read(length + 1)
        # An end makes a row begin at `offset` when its last byte is the one before.
        ends = _row_ends(data[:length])
        if data[:length].endswith(b"\r") and data[length:] == b"\n":
            ends -= 1
        return self._rows[at] + ends + 1

    def read(self, row: int) -> str | None:
        """The text of one row, without its end; None when the file has fewer rows."""
        for text in self.read_from(row):
            return text
        return None

    def read_many(self, rows: Iterable[int]) -> dict[int, str]:
        """The texts of several rows, each part of the file read once; rows that are not there are not."""
        wanted = sorted({row for row in rows if 0 <= row < self.count})
        found: dict[int, str] = {}
        at = 0
        while at < len(wanted):
            checkpoint = bisect_right(self._rows, wanted[at])
            for number, text in enumerate(self.read_from(wanted[at]), start=wanted[at]):
                if number == wanted[at]:
                    found[number] = text
                    at += 1
                    # The next one may be far: begin anew from the row start that is known there.
                    if at == len(wanted) or bisect_right(self._rows, wanted[at]) > checkpoint + 1:
                        break
        return found

    def read_from(self, row: int) -> Iterator[str]:
        """The texts of the rows from `row` on."""
        if not 0 <= row < self.count:
            return
        at = bisect_right(self._rows, row) - 1
        with open_rows(self.path) as file:
            file.seek(self._offsets[at])
            for number, text in enumerate(split_rows(file), start=self._rows[at]):
                if number >= row:
                    yield text


def _row_ends(data: bytes) -> int:
    return data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")


def _first_row_start(data: bytes) -> int | None:
    """Where the first row begins that begins inside or right after `data`."""
    ends = [found for found in (data.find(b"\n"), data.find(b"\r")) if found >= 0]
    if not ends:
        return None
    first = min(ends)
    return first + (2 if data[first : first + 2] == b"\r\n" else 1)


def _without_cut_ends(file: BinaryIO, chunk_bytes: int = _CHUNK) -> Iterator[bytes]:
    """The file in pieces that never end between the CR and the LF of one row end."""
    held = b""
    while chunk := file.read(chunk_bytes):
        data = held + chunk
        held = b"\r" if data.endswith(b"\r") else b""
        if len(data) > len(held):
            yield data[: len(data) - len(held)]
    if held:
        yield held


def split_rows(file: BinaryIO, chunk_bytes: int = _CHUNK) -> Iterator[str]:
    """The texts of the rows of an open file from where it stands."""
    rest = b""
    for data in _without_cut_ends(file, chunk_bytes):
        *rows, rest = (rest + data).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for row in rows:
            yield _text(row)
    if rest:
        yield _text(rest)


def _text(row: bytes) -> str:
    text = row[:MAX_ROW_BYTES].decode("utf-8", "replace")
    return text if len(row) <= MAX_ROW_BYTES else text + "…"


class RowIndexes:
    """Indexes by file, for as long as the file stays as it is; the least used go first."""

    def __init__(self, keep: int = 64) -> None:
        self._keep = keep
        self._lock = threading.Lock()
        self._indexes: OrderedDict[tuple[str, int, int], RowIndex] = OrderedDict()

    def of(self, path: str) -> RowIndex:
        """Raises OSError when the file cannot be read."""
        status = Path(path).stat()
        key = (path, status.st_size, status.st_mtime_ns)
        with self._lock:
            found = self._indexes.get(key)
            if found is not None:
                self._indexes.move_to_end(key)
                return found
        made = RowIndex(path)
        with self._lock:
            self._indexes[key] = made
            while len(self._indexes) > self._keep:
                self._indexes.popitem(last=False)
        return made

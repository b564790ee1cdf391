"""The text of physical rows of files: from row number to bytes and back.

Rows end as Spark's text input ends them: LF, CR LF, lone CR. Rows count from 0, header lines included, from
the file's start or from that of a partition. Nothing is read before it is needed, and what was read once is
known: the row number and the offset of a row in each 16 KiB, or of fewer where a file is huge.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import BinaryIO, NamedTuple, cast

from lineage_service.tracing.files.decompression import Check, FileBytes, Reader, unlimited
from lineage_service.tracing.files.file_systems import FileSystems
from lineage_service.tracing.files.row_ends import (
    MAX_ROW_BYTES,
    ROW_END,
    RowEnds,
    count_row_ends,
    may_hold,
    rows_in_pieces,
    rows_of,
    shown,
    split_rows,
)

__all__ = ["RowIndex"]

_CHUNK = 1 << 16
#: What was not read yet is read in larger and larger pieces, up to this.
_MOST_NEW = 1 << 19
#: Of known row starts, where a file is not huge: what is read for one row.
_SPACING = 1 << 14
#: What is compressed can only be read from a few places (decompression.py).
_FAR_WITHIN = 1 << 23
#: Known row starts of one index (16 bytes each); where there would be more, every second one goes.
_MOST_MARKS = 1 << 15
#: Between known row starts that are further apart, rows are read piece by piece.
_MOST_AT_ONCE = 1 << 18


class _Stretch(NamedTuple):
    """Whole rows of a file, from `row` to before `next_row`, and where their bytes are."""

    row: int
    next_row: int
    offset: int
    length: int


class RowIndex:
    """Where the rows of one state of a file begin, as far as it was asked for. Threads may share it.

    With `start` above 0, row 0 is the first that begins behind that byte: by Hadoop's rule the first of the
    partition that starts there: the row of its first byte belongs to the partition before.
    What takes a check raises what it raises, and UnreadableError.
    """

    def __init__(
        self, path: str, chunk_bytes: int = _CHUNK, *, start: int = 0, files: FileSystems | None = None
    ) -> None:
        self._bytes = FileBytes(path, files or FileSystems())
        self._chunk = chunk_bytes
        # What begins at `start` and is not of this partition counts as row -1.
        first = -1 if start else 0
        self._marks = array("q", [first]), array("q", [start])  # number and offset of known row starts
        self._spacing = 0
        self._at, self._ends = start, first  # so far it is read, and so many row ends were there
        self._begun = first  # rows of which a byte was read
        self._is_whole = False  # all is read
        self._before: dict[int, int] = {}  # offset of a partition -> rows that begin up to it
        self._growing, self._changing = threading.Lock(), threading.Lock()

    # -- what is known ------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """How many rows there are; reads what was not read yet."""
        return self.count_rows(unlimited)

    def count_rows(self, check: Check) -> int:
        self._grow(lambda: False, check)
        return max(self._begun, 0)

    @property
    def known_rows(self) -> int:
        """How many rows were read to their end."""
        return max(self._ends, 0)

    def rows_starting_up_to(self, offset: int, check: Check = unlimited) -> int:
        """How many rows begin at a byte from 0 to `offset`, both included. Cached: partitions begin there."""
        before = self._before.get(offset)
        if before is None:
            before = self._before[offset] = self._rows_up_to(offset, check)
        return before

    def _rows_up_to(self, offset: int, check: Check) -> int:
        self._grow(lambda: self._at > offset, check)
        if self._is_whole and offset >= self._at:
            return max(self._begun, 0)
        rows, offsets = self._marks
        at = bisect_right(offsets, offset) - 1
        count = rows[at] + 1
        with self._pieces(offsets[at], check) as pieces:
            for base, data in pieces:
                if base + len(data) > offset:
                    before = data[: offset - base]
                    is_cut = before.endswith(b"\r") and data[offset - base] == 10
                    return count + count_row_ends(before) - is_cut
                count += count_row_ends(data)
        return count

    def offset_of(self, row: int, check: Check = unlimited) -> int | None:
        """The byte that a row begins at; None when there are fewer rows."""
        if not self._has(row, check):
            return None
        rows, offsets = self._marks
        at = bisect_right(rows, row) - 1
        number, offset = rows[at], offsets[at]
        with self._pieces(offset, check) as pieces:
            for base, data in pieces:
                if number == row:
                    return base
                ends = count_row_ends(data)
                if number + ends >= row:
                    end = next(islice(ROW_END.finditer(data), row - number - 1, None))
                    return base + end.end()
                number += ends
        return None

    # -- rows ---------------------------------------------------------------------------------------

    def read(self, row: int) -> str | None:
        """The text of one row, without its end; None when the file has fewer rows."""
        return self.read_many([row]).get(row)

    def read_many(self, rows: Iterable[int]) -> dict[int, str]:
        """The texts of several rows; rows that are not there are not."""
        return {row: shown(data) for row, data in self.read_bytes(rows).items()}

    def read_bytes(self, rows: Iterable[int], check: Check = unlimited) -> dict[int, bytes]:
        """Several rows, each part of the file read once. Of a row, MAX_ROW_BYTES and one more at most."""
        numbers = sorted({row for row in rows if row >= 0})
        texts: dict[int, bytes] = {}
        at = 0
        while at < len(numbers) and self._has(numbers[at], check):
            at = self._read_known(numbers, at, texts, check)
            if at == len(numbers) or not self._has(numbers[at], check):
                break
            before = at
            with self.rows_from(numbers[at], check) as numbered:
                for number, data in numbered:
                    if number != numbers[at]:
                        continue
                    texts[number] = data
                    at += 1
                    # The next one may be far: begin again from the row start that is known there.
                    if at == len(numbers) or self._is_far(number, numbers[at]):
                        break
            if at == before:
                break
        return texts

    def are_near(self, rows: Iterable[int]) -> bool:
        """Each of them can be read at once, from a row start that is known."""
        return self._bytes.is_plain and all(self._stretch(row) is not None for row in rows)

    def _read_known(self, numbers: list[int], at: int, texts: dict[int, bytes], check: Check) -> int:
        """Read from the one at `at` on those rows that stand between two row starts that are known.

        Where bytes can be read at once from there: the file is opened once. Gives the first that is left.
        """
        if not self._bytes.is_plain:
            return at
        # To the row start behind them: it is in the piece that they are in, or in the next one.
        self._grow(lambda: self._marks[0][-1] > numbers[-1], check)
        stretch = self._stretch(numbers[at])
        if stretch is None:
            return at
        with self._bytes.reading(0, check) as reader:
            file = cast(BinaryIO, reader)
            while stretch is not None:
                check()
                file.seek(stretch.offset)
                data = file.read(stretch.length)
                if len(data) < stretch.length:
                    break
                after = bisect_left(numbers, stretch.next_row, at)
                texts.update(rows_of(data, stretch.row, numbers[at:after]))
                at = after
                stretch = self._stretch(numbers[at]) if at < len(numbers) else None
        return at

    def _stretch(self, row: int) -> _Stretch | None:
        """Between the known row starts around a row, if they are near."""
        rows, offsets = self._marks
        at = bisect_right(rows, row)
        if at >= len(rows) or offsets[at] - offsets[at - 1] > _MOST_AT_ONCE:
            return None
        return _Stretch(rows[at - 1], rows[at], offsets[at - 1], offsets[at] - offsets[at - 1])

    def matching(
        self, text: str, first: int, last: int, check: Check = unlimited, encoding: str = "utf-8"
    ) -> Iterator[tuple[int, bool]]:
        """Of the rows from `first` to before `last`, those that hold `text` in any case: (row, True).

        Between them (row, False), when all rows before that one were looked at.
        """
        if first >= last or not self._has(first, check):
            return
        folded = text.casefold()
        rows, offsets = self._marks
        at = bisect_right(rows, first) - 1
        number, rest = rows[at], b""
        with self._pieces(offsets[at], check) as pieces:
            for _, data in pieces:
                data = rest + data if rest else data
                end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
                count = count_row_ends(data)
                if number + count > first and may_hold(data[:end], folded, encoding):
                    for row, line in enumerate(split_rows(data[:end]), start=number):
                        if first <= row < last and folded in shown(line, encoding).casefold():
                            yield row, True
                rest = data[end : end + MAX_ROW_BYTES + 1]
                number += count
                if number >= last:
                    return
                yield max(number, first), False
        if rest and first <= number and folded in shown(rest, encoding).casefold():
            yield number, True

    def _has(self, row: int, check: Check) -> bool:
        self._grow(lambda: self._begun > row, check)
        return self._begun > row

    def _is_far(self, row: int, other: int) -> bool:
        """To begin again costs less than to read on from one row to another."""
        rows, offsets = self._marks
        gap = offsets[bisect_right(rows, other) - 1] - offsets[bisect_right(rows, row) - 1]
        return gap > (self._chunk if self._bytes.is_plain else _FAR_WITHIN)

    @contextmanager
    def rows_from(self, row: int, check: Check) -> Iterator[Iterator[tuple[int, bytes]]]:
        """(number, bytes) of the rows from `row` on, from where one is known."""
        rows, offsets = self._marks
        at = bisect_right(rows, row) - 1
        with self._pieces(offsets[at], check) as pieces:
            yield rows_in_pieces(rows[at], row, (data for _, data in pieces))

    # -- reading ------------------------------------------------------------------------------------

    def _grow(self, is_enough: Callable[[], bool], check: Check) -> None:
        """Read on until that holds, or to the end. What was read when `check` ends it is known."""
        while not (self._is_whole or is_enough()):
            if not self._growing.acquire(timeout=0.05):  # another query reads on
                check()
                continue
            try:
                with self._pieces(self._at, check, at_length=True) as pieces:
                    while not (self._is_whole or is_enough()):
                        next(pieces, None)
            finally:
                self._growing.release()

    @contextmanager
    def _pieces(
        self, offset: int, check: Check, *, at_length: bool = False
    ) -> Iterator[Iterator[tuple[int, bytes]]]:
        """(offset, bytes) of the file from `offset` on, not cut between the CR and the LF of one row end."""
        with self._bytes.reading(offset, check, at_length=at_length) as file:
            yield self._read_on(file, offset, check)

    def _read_on(self, file: Reader, base: int, check: Check) -> Iterator[tuple[int, bytes]]:
        rest, size = b"", self._chunk
        while True:
            indexed = self._at - base - len(rest)
            chunk = file.read(min(self._chunk, indexed) if indexed > 0 else size)
            size = min(2 * size, max(self._chunk, _MOST_NEW))
            data = rest + chunk
            rest = b"\r" if chunk and data.endswith(b"\r") else b""
            data = data[: len(data) - len(rest)]
            if base == self._at:
                self._learn(base, data, is_end=not chunk)
            if data:
                yield base, data
                base += len(data)
            if not chunk:
                return
            check()

    def _learn(self, base: int, data: bytes, *, is_end: bool) -> None:
        """Take a piece into the index, if that was not done yet."""
        with self._changing:
            if base != self._at or self._is_whole:
                return
            rows, offsets = self._marks
            counted = RowEnds(data)
            *before_each, count = counted.before_each(_SPACING)
            for begin, ends in zip(range(0, len(data), _SPACING), before_each, strict=True):
                start = base + counted.after(begin)
                if start > max(base, offsets[-1]) and start >= offsets[-1] + self._spacing:
                    offsets.append(start)  # before its row: it is looked up by rows
                    rows.append(self._ends + ends + 1)
            if len(rows) > _MOST_MARKS:
                self._marks = rows[::2], offsets[::2]
                self._spacing = 2 * max(self._spacing, min(self._chunk, _SPACING))
            self._ends += count
            if data:
                self._begun = self._ends + (not data.endswith((b"\n", b"\r")))
            self._is_whole = is_end
            self._at = base + len(data)  # last: it says that all the rest is known

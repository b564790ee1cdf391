"""Rows in pieces of bytes: where they end, how many there are, their texts. Pure.

Rows end as Spark's text input ends them: LF, CR LF, lone CR. Pieces are not cut within a CR LF.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np

__all__ = [
    "MAX_ROW_BYTES",
    "ROW_END",
    "RowEnds",
    "count_row_ends",
    "may_hold",
    "rows_in_pieces",
    "rows_of",
    "shown",
    "shown_text",
    "split_rows",
]

#: A row's text is shown up to this many bytes.
MAX_ROW_BYTES = 100_000
ROW_END = re.compile(rb"\r\n|\r|\n")
_LF, _CR = 10, 13


def rows_of(data: bytes, number: int, numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    """(row, bytes) of wanted rows of whole rows, the first of which has that number."""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    ends = (np.frombuffer(data, np.uint8) == _LF).nonzero()[0]
    for row in numbers:
        if row - number >= len(ends):
            return  # the file has changed since
        start = int(ends[row - number - 1]) + 1 if row > number else 0
        yield row, data[start : min(int(ends[row - number]), start + MAX_ROW_BYTES + 1)]


class RowEnds:
    """The row ends of pieces of bytes that are not cut within one."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        values = np.frombuffer(data, np.uint8)
        self._is_end = values == _LF
        self._has_cr = b"\r" in data
        if self._has_cr:
            is_lone = values == _CR
            is_lone[:-1] &= ~self._is_end[1:]
            self._is_end |= is_lone

    @property
    def count(self) -> int:
        return int(np.count_nonzero(self._is_end))

    @property
    def positions(self) -> list[int]:
        """Where the row behind each end begins."""
        return list(map(int, self._is_end.nonzero()[0] + 1))

    def after(self, begin: int) -> int:
        """Where a row begins after the first end from there on; 0 where there is none."""
        if not self._has_cr:
            return self._data.find(b"\n", begin) + 1
        end = ROW_END.search(self._data, begin)
        return 0 if end is None else end.end()

    def before_each(self, step: int) -> list[int]:
        """How many are before the bytes 0, `step`, ..., and in all. `step` is a multiple of 1,024."""
        whole = len(self._data) // step * step
        # Eight flags are added at once, 128 times: NumPy counts by rows far slower.
        eights = self._is_end[:whole].view(np.uint64).reshape(-1, 128).sum(axis=1)
        in_steps = eights.view(np.uint8).reshape(-1, step // 128).sum(axis=1)
        before = [0, *np.cumsum(in_steps).tolist()]
        if whole < len(self._data):
            before.append(before[-1] + int(np.count_nonzero(self._is_end[whole:])))
        return before


def count_row_ends(data: bytes) -> int:
    return RowEnds(data).count


def split_rows(data: bytes) -> list[bytes]:
    """The rows of bytes that end with a row end."""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    rows = data.split(b"\n")
    rows.pop()
    return rows


def rows_in_pieces(number: int, first: int, pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """(number, bytes) of the rows from `first` on; the pieces begin with row `number`."""
    rest = b""
    for data in pieces:
        ends = count_row_ends(data)
        if not ends:
            if number >= first and len(rest) <= MAX_ROW_BYTES:
                rest += data[: MAX_ROW_BYTES + 1]
        elif number + ends >= first:
            end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
            whole = split_rows(data[:end])
            whole[0] = rest + whole[0]
            for at, row in enumerate(whole[max(first - number, 0) :], start=max(first, number)):
                yield at, row[: MAX_ROW_BYTES + 1]
            rest = data[end:][: MAX_ROW_BYTES + 1]
        number += ends
    if rest and number >= first:
        yield number, rest


def may_hold(data: bytes, folded: str, encoding: str = "utf-8") -> bool:
    """False where no row of the bytes holds the casefolded text: most of a file, so it is made sure fast."""
    if encoding == "utf-8" and data.isascii():
        # Nothing but ASCII folds like ASCII, and the text is folded.
        return folded.isascii() and folded.encode() in data.lower()
    return folded in data.decode(encoding, "replace").casefold()


def shown(row: bytes, encoding: str = "utf-8") -> str:
    """The text of a row, cut to its greatest length."""
    if len(row) <= MAX_ROW_BYTES:
        return row.decode(encoding, "replace")
    return row[:MAX_ROW_BYTES].decode(encoding, "replace").removesuffix("\ufffd") + "…"


def shown_text(text: str) -> str:
    """The same of a row that was decoded."""
    return text if len(text) <= MAX_ROW_BYTES // 4 else shown(text.encode("utf-8", "replace"))

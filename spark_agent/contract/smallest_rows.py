"""The smallest part of some rows on which a test still fails. Pure.

Delta debugging (Zeller and Hildebrandt, 2002): larger and larger shares of the rows are left out, until no
single row can be. Rows that look odd are tried before, so that a single culprit is known after one test.
No set of rows is tested twice. The best answer so far is there at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

__all__ = ["OutOfTimeError", "SmallestRows", "Subset"]

Subset = tuple[int, ...]
"""Numbers of rows, in order."""


class OutOfTimeError(Exception):
    """No further test can be made."""


class SmallestRows:
    """Of `count` rows. `fails` says whether the test fails on some of them; it may raise OutOfTimeError.

    `order` are rows to try first, the most suspicious one first. `tested`: what was tested before.
    """

    def __init__(
        self,
        count: int,
        fails: Callable[[Subset], bool],
        order: Sequence[int] = (),
        tested: Mapping[Subset, bool] | None = None,
    ) -> None:
        self._count, self._fails, self._order = count, fails, order
        self._results: dict[int, bool] = {}
        #: The smallest subset that failed so far; None if none did.
        self.best: Subset | None = None
        #: Was each row of `best` left out, and the test then passed?
        self.is_minimal = False
        for rows, has_failed in (tested or {}).items():
            self._results[_bitmap(rows, count)] = has_failed
        failing = [rows for rows, has_failed in (tested or {}).items() if has_failed]
        self.best = min(failing, key=len, default=None)

    @property
    def _all(self) -> Subset:
        return tuple(range(self._count))

    @property
    def rest(self) -> Subset:
        """All rows but the best."""
        return _without(self._all, self.best or ())

    @property
    def tests(self) -> int:
        """How many different sets of rows were tested."""
        return len(self._results)

    def fails(self, rows: Subset) -> bool:
        """Test these rows, unless they were tested before. Raises OutOfTimeError."""
        bits = _bitmap(rows, self._count)
        if bits not in self._results:
            self._results[bits] = self._fails(rows)
        if self._results[bits] and (self.best is None or len(rows) < len(self.best)):
            self.best = rows
        return self._results[bits]

    def search(self) -> None:
        """Find the smallest, if the test fails on all rows or some. Does not raise when the time is over."""
        try:
            if self.best is None and not self.fails(self._all):
                return
            if self.fails(()):
                self.is_minimal = True
                return
            rows = self._reduced(self._suspicious(self._all))
            self.is_minimal = all(not self.fails(_without(rows, (row,))) for row in rows)
        except OutOfTimeError:
            return

    def is_necessary(self) -> bool | None:
        """Does the test pass without the best? None where the time is over."""
        try:
            return self.best is not None and not self.fails(self.rest)
        except OutOfTimeError:
            return None

    def _suspicious(self, rows: Subset) -> Subset:
        """The first 1, 2, 4, ... rows of the order on which the test fails; all where none do."""
        size = 1
        while size < len(self._order):
            first = tuple(sorted(self._order[:size]))
            if self.fails(first):
                return first
            size *= 2
        return rows

    def _reduced(self, rows: Subset) -> Subset:
        """A subset of failing rows that fails, and from which no row can be left out."""
        parts = 2
        while len(rows) > 1:
            chunks = list(_chunks(rows, parts))
            smaller = next((chunk for chunk in chunks if self.fails(chunk)), None)
            if smaller is not None:
                rows, parts = smaller, 2
                continue
            rests = (_without(rows, chunk) for chunk in chunks) if parts > 2 else iter(())
            smaller = next((rest for rest in rests if self.fails(rest)), None)
            if smaller is not None:
                rows, parts = smaller, max(parts - 1, 2)
            elif parts >= len(rows):
                break
            else:
                parts = min(2 * parts, len(rows))
        return rows


def _chunks(rows: Subset, parts: int) -> Iterator[Subset]:
    """`parts` pieces of nearly one size; none is empty."""
    parts = min(parts, len(rows))
    ends = [len(rows) * at // parts for at in range(parts + 1)]
    for begin, end in pairwise(ends):
        yield rows[begin:end]


def _without(rows: Subset, others: Subset) -> Subset:
    left_out = frozenset(others)
    return tuple(row for row in rows if row not in left_out)


def _bitmap(rows: Subset, count: int) -> int:
    bits = bytearray(count // 8 + 1)
    for row in rows:
        bits[row >> 3] |= 1 << (row & 7)
    return int.from_bytes(bits, "little")

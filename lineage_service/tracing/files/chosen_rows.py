"""Which rows of a file are copied: some, or all but these. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

__all__ = ["ChosenRows"]

_END = 1 << 62


@dataclass(frozen=True, slots=True)
class ChosenRows:
    """`ranges` are (first, count), in order, not touching."""

    ranges: Sequence[tuple[int, int]]

    @classmethod
    def of(cls, numbers: Iterable[int]) -> ChosenRows:
        """These rows, in any order."""
        ranges: list[tuple[int, int]] = []
        for number in sorted(set(numbers)):
            if ranges and sum(ranges[-1]) == number:
                ranges[-1] = ranges[-1][0], ranges[-1][1] + 1
            else:
                ranges.append((number, 1))
        return cls(ranges)

    @property
    def others(self) -> ChosenRows:
        """All rows but these."""
        begin, ranges = 0, list[tuple[int, int]]()
        for first, count in (*self.ranges, (_END, 0)):
            if first > begin:
                ranges.append((begin, first - begin))
            begin = first + count
        return ChosenRows(ranges)

    def within(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """(first, end) of those from `first` to before `end`."""
        at = max(bisect_right(self.ranges, (first, _END)) - 1, 0)
        for begin, count in self.ranges[at:]:
            if begin >= end:
                return
            if begin + count > first:
                yield max(begin, first), min(begin + count, end)

    def numbers_within(self, first: int, end: int) -> list[int]:
        return [number for begin, stop in self.within(first, end) for number in range(begin, stop)]

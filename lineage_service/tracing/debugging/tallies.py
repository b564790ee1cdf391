"""Whole numbers and how often each occurs: how many outputs each input of a task gave, say. Pure.

A tally of millions of numbers is small where these are few different ones. It keeps no order of its units.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lineage_service.tracing.columns.column_cache import Integers

__all__ = ["NOTHING", "Tally"]

#: Numbers are counted by an array where their range is at most so many times as large as they are many.
_DENSE = 4


@dataclass(frozen=True, eq=False)
class Tally:
    """`values` ascend, each once; `counts` says how often each occurs, at least once."""

    values: Integers
    counts: Integers

    @classmethod
    def of(cls, numbers: Integers) -> Tally:
        """Of numbers that are not negative."""
        if len(numbers) and int(numbers.max()) <= _DENSE * len(numbers) + 1024:
            return cls.of_counts(np.bincount(numbers))
        values, counts = np.unique(numbers, return_counts=True)
        return cls(values.astype(np.int64), counts.astype(np.int64))

    @classmethod
    def of_counts(cls, counts: Integers) -> Tally:
        """`counts[v]`: how often v occurs."""
        values = np.flatnonzero(counts)
        return cls(values, counts[values].astype(np.int64))

    @classmethod
    def together(cls, tallies: Iterable[Tally]) -> Tally:
        """All units of several."""
        several = list(tallies)
        if len(several) == 1:
            return several[0]
        if not several:
            return NOTHING
        values, places = np.unique(np.concatenate([one.values for one in several]), return_inverse=True)
        counts = np.zeros(len(values), np.int64)
        np.add.at(counts, places, np.concatenate([one.counts for one in several]))
        return cls(values, counts)

    def with_zeros(self, count: int) -> Tally:
        """And so many zeros."""
        if count <= 0:
            return self
        return Tally.together((self, Tally(np.zeros(1, np.int64), np.array([count]))))

    def without(self, other: Tally) -> Tally:
        """Less the units of another tally, which are all among these."""
        counts = self.counts.copy()
        counts[self.values.searchsorted(other.values)] -= other.counts
        remain = counts > 0
        return Tally(self.values[remain], counts[remain])

    def without_one(self, value: int) -> Tally:
        """Less one unit of that value, which is there."""
        return self.without(Tally(np.array([value]), np.ones(1, np.int64)))

    def clipped(self, most: int) -> Tally:
        """Each value is at most this one."""
        if not self.size or self.high <= most:
            return self
        below = int(self.values.searchsorted(most, "left"))
        rest = Tally(np.array([most], np.int64), np.array([self.counts[below:].sum()], np.int64))
        return Tally.together((Tally(self.values[:below], self.counts[:below]), rest))

    @cached_property
    def size(self) -> int:
        """How many units there are."""
        return int(self.counts.sum())

    @property
    def low(self) -> int:
        return int(self.values[0])

    @property
    def high(self) -> int:
        return int(self.values[-1])

    @cached_property
    def total(self) -> float:
        return float(np.dot(self.values.astype(np.float64), self.counts))

    @cached_property
    def squares(self) -> float:
        """The sum of the squares."""
        return float(np.dot(np.square(self.values.astype(np.float64)), self.counts))

    @property
    def mean(self) -> float:
        return self.total / self.size if self.size else 0.0

    def count_of(self, value: int) -> int:
        at = int(self.values.searchsorted(value))
        return int(self.counts[at]) if at < len(self.values) and self.values[at] == value else 0

    def at_least(self, value: int) -> int:
        """How many units are as large, or larger."""
        return int(self.counts[int(self.values.searchsorted(value, "left")) :].sum())

    def at_most(self, value: int) -> int:
        """How many units are as small, or smaller."""
        return int(self.counts[: int(self.values.searchsorted(value, "right"))].sum())

    def quantile(self, share: float) -> int:
        """The smallest value that so large a share of the units does not exceed."""
        place = int(np.cumsum(self.counts).searchsorted(share * self.size, "left"))
        return int(self.values[min(place, len(self.values) - 1)])


NOTHING = Tally(np.zeros(0, np.int64), np.zeros(0, np.int64))

"""How oddly each of some tasks of one operation behaves, by one feature of it. Pure.

Two surprises, in bits: that of the task's most extreme unit among the units of the other tasks, times the
number of its own units; and that of its mean among theirs. Both are 0 where nothing can be said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lineage_service.tracing.debugging.means import LEAST_OTHERS, mean_bits
from lineage_service.tracing.debugging.tails import bits_of, low_bits, upper_bits
from lineage_service.tracing.debugging.tallies import Tally

__all__ = ["Extreme", "Scored", "Sides", "scored"]

Sides = Literal["both", "upper", "none"]
"""Which units may be extreme: the largest and the smallest, the largest, or none of them."""


@dataclass(frozen=True, slots=True)
class Extreme:
    """The unit that surprises most."""

    value: int
    bits: float
    is_low: bool = False


@dataclass(frozen=True, slots=True)
class Scored:
    """One task. `tests` is how many of the surprises could be computed."""

    extreme: Extreme | None
    mean_bits: float
    tests: int

    @property
    def tail_bits(self) -> float:
        return 0.0 if self.extreme is None else self.extreme.bits

    @property
    def bits(self) -> float:
        return max(self.tail_bits, self.mean_bits)


def scored(tallies: Sequence[Tally], sides: Sides = "both", *, has_means: bool = True) -> list[Scored]:
    """Of tasks of one operation, each of which has at least one unit."""
    means = mean_bits(tallies) if has_means else [0.0] * len(tallies)
    pooled = Tally.together(tallies)
    uppers: list[Extreme | None] = [None] * len(tallies)
    lows = list(uppers)
    if sides != "none" and pooled.size > 1:
        uppers = _extremes(tallies, pooled, is_low=False)
        lows = _extremes(tallies, pooled, is_low=True) if sides == "both" else lows
    tests = sum(one is not None for one in (uppers[0], lows[0])) if tallies else 0
    tests += has_means and len(tallies) > LEAST_OTHERS
    return [
        Scored(max((one for one in both if one is not None), key=_bits, default=None), mean, tests)
        for *both, mean in zip(uppers, lows, means, strict=True)
    ]


def _bits(extreme: Extreme) -> float:
    return extreme.bits


def _extremes(tallies: Sequence[Tally], pooled: Tally, *, is_low: bool) -> list[Extreme | None]:
    """The largest or the smallest unit of each task."""
    values = np.array([tally.low if is_low else tally.high for tally in tallies])
    own = np.array([int(tally.counts[0 if is_low else -1]) for tally in tallies])
    sizes = np.array([tally.size for tally in tallies])
    cumulated = np.cumsum(pooled.counts if is_low else pooled.counts[::-1])
    places = pooled.values.searchsorted(values)
    as_extreme = cumulated[places if is_low else len(pooled.values) - 1 - places]
    others = pooled.size - sizes
    if len(tallies) == 1:  # it is compared with its own other units
        others, own = others + sizes - 1, np.ones(1, np.int64)
    chances = sizes * (as_extreme - own + 1) / (others + 1)
    alone = as_extreme == own
    return [
        _alone(tallies, pooled, at, is_low=is_low)
        if alone[at]
        else Extreme(int(values[at]), bits_of(float(chances[at])), is_low)
        for at in range(len(tallies))
    ]


def _alone(tallies: Sequence[Tally], pooled: Tally, at: int, *, is_low: bool) -> Extreme:
    """No unit of the others is as extreme: how far theirs are from it counts, too. There is one such task."""
    tally = tallies[at]
    value = tally.low if is_low else tally.high
    others = pooled.without(tally) if len(tallies) > 1 else pooled.without_one(value)
    bits = (low_bits if is_low else upper_bits)(value, tally.size, others)
    return Extreme(value, bits, is_low)

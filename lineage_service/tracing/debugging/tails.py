"""How surprising it is that the most extreme of some numbers is so extreme, given others. In bits. Pure.

The tail is counted where others are as extreme. Beyond all others it is continued as a power of the value
(Hill's estimate, Annals of Statistics 3(5), 1975), by how the largest of the others fall off. So numbers of
which a few are by nature far larger than most surprise little, and a number beside equal ones does.
"""

from __future__ import annotations

from math import ceil, inf, log, log2, sqrt

import numpy as np

from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.debugging.tallies import Tally

__all__ = ["MOST_BITS", "bits_of", "low_bits", "upper_bits"]

#: More is not distinguished.
MOST_BITS = 60.0
#: Others that fall off faster are taken to fall off so: numbers that seldom differ may differ again.
_LEAST_INDEX = 0.1
_FEWEST_IN_TAIL = 10


def bits_of(probability: float) -> float:
    """0 for what is certain."""
    if probability <= 2.0**-MOST_BITS:
        return MOST_BITS
    return max(-log2(probability), 0.0)


def upper_bits(value: int, units: int, others: Tally) -> float:
    """That the largest of so many units is `value` or larger, if they are as the others."""
    as_large = others.at_least(value)
    beyond = 1.0 if as_large or not others.size else _beyond(value, others.values[::-1], others.counts[::-1])
    return bits_of(units * beyond * (as_large + 1) / (others.size + 1))


def low_bits(value: int, units: int, others: Tally) -> float:
    """That the smallest of so many units is `value` or smaller, if they are as the others."""
    as_small = others.at_most(value)
    beyond = 1.0 if as_small or not others.size else _beyond(value, others.values, others.counts)
    return bits_of(units * beyond * (as_small + 1) / (others.size + 1))


def _beyond(value: int, values: Integers, counts: Integers) -> float:
    """What remains of the tail behind the first of `values`, the extreme one, at `value`."""
    size = int(counts.sum())
    in_tail = min(max(_FEWEST_IN_TAIL, ceil(2 * sqrt(size))), size - 1)
    index = inf
    if in_tail > 0:
        cumulated = np.minimum(np.cumsum(counts), in_tail)
        weights = np.diff(cumulated, prepend=0)
        edge = values[int(np.cumsum(counts).searchsorted(in_tail + 1, "left"))]
        tail = weights > 0
        logs = np.abs(np.log((values[tail] + 1.0) / (edge + 1.0)))
        # The estimate is as uncertain as few numbers are: the heavier tail surprises less.
        index = float(np.dot(logs, weights[tail])) / in_tail * (1 + 1 / sqrt(in_tail))
    ratio = abs(log((value + 1.0) / (float(values[0]) + 1.0)))
    return float(np.exp(-ratio / max(index, _LEAST_INDEX)))

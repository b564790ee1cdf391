"""How far the mean of a task is from the means of the tasks beside it. In bits. Pure.

Median and median absolute deviation of the means are not moved by the odd one. To them comes the chance of
the task's own units, so that a small task may differ more, and one output more or less is never surprising.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import erfc, log1p, sqrt

import numpy as np
import numpy.typing as npt

from lineage_service.tracing.debugging.tails import MOST_BITS, bits_of
from lineage_service.tracing.debugging.tallies import Tally

__all__ = ["LEAST_OTHERS", "deviation_bits", "mean_bits"]

#: Newt asks for more than two of a kind.
LEAST_OTHERS = 3
#: Of normally distributed numbers, their standard deviation over their median absolute deviation.
_NORMAL = 1.4826
#: The median absolute deviation says as much as the standard deviation of so many of the numbers.
_EFFICIENCY = 0.37
#: Among so many tasks the odd one is left out of those that it is compared with; of more it is one of them.
_MOST_LEFT_OUT = 1_000
#: Distances of others that fall off faster are taken to fall off so.
_LEAST_INDEX = 0.1
#: How much heavier than estimated their tail may be, for one of them: chosen by simulation of jobs that are
#: well, whose tasks differ by nature. Of these, 1 in 20 has an odd task at most; where tasks are of two kinds
#: by nature, 1 in 10.
_UNCERTAIN = 0.5
#: Larger units are taken for this quantile of all: what one unit does is not the task's mean.
_CLIPPED = 0.99

_Floats = npt.NDArray[np.float64]


def mean_bits(tallies: Sequence[Tally]) -> list[float]:
    """For each of some tasks; 0 where there are too few others. No tally is empty."""
    if len(tallies) <= LEAST_OTHERS:
        return [0.0] * len(tallies)
    most = Tally.together(tallies).quantile(_CLIPPED)
    clipped = [tally.clipped(most) for tally in tallies]
    sizes = np.array([tally.size for tally in clipped], np.float64)
    totals = np.array([tally.total for tally in clipped])
    squares = np.array([tally.squares for tally in clipped])
    means = totals / sizes
    others = sizes.sum() - sizes
    variances = (squares.sum() - squares) / others - np.square((totals.sum() - totals) / others)
    return deviation_bits(means, np.maximum(variances, 0.0) / sizes, 1.0 / sizes)


def deviation_bits(means: _Floats, variances: _Floats, floors: _Floats) -> list[float]:
    """For each mean, with the variance that its own chance gives it. A floor is what one unit moves.

    The smaller one of two surprises: that of Student's t, and that of being farther from the others' median
    than each of them is. So neither a few equal tasks nor many different ones are taken for odd.
    """
    freedom = max(_EFFICIENCY * (len(means) - 2), 1.0)
    bits = []
    for at, (median, others) in enumerate(_others_distances(means)):
        spread = (_NORMAL * float(np.median(others))) ** 2 * (1 + 1 / len(others))
        chance = float(variances[at]) + ((1 + abs(median)) * float(floors[at])) ** 2
        distance, scale = abs(float(means[at]) - median), sqrt(spread + chance)
        student = _two_sided(distance / scale if scale > 0 else 0.0, freedom)
        bits.append(min(student, _beyond_others(distance, sqrt(chance), others)))
    return bits


def _others_distances(means: _Floats) -> Iterator[tuple[float, _Floats]]:
    """For each mean: the median of the others, and how far each of these is from it."""
    median = float(np.median(means))
    distances = np.abs(means - median)
    for at in range(len(means)):
        if len(means) > _MOST_LEFT_OUT:
            yield median, np.delete(distances, at)
        else:
            others = np.delete(means, at)
            median_of_others = float(np.median(others))
            yield median_of_others, np.abs(others - median_of_others)


def _beyond_others(distance: float, noise: float, others: _Floats) -> float:
    """By the tail of the larger half of the others' distances, as `tails` has it of units."""
    farther = int(np.count_nonzero(others >= distance))
    chance = (farther + 1) / (len(others) + 1)
    if farther:
        return bits_of(chance)
    in_tail = min(max(len(others) // 2, 2), len(others) - 1)
    tail = np.sort(others)[::-1][: in_tail + 1] + noise
    if tail[-1] <= 0:
        return MOST_BITS if distance > 0 else 0.0
    index = float(np.log(tail[:-1] / tail[-1]).mean()) * (1 + _UNCERTAIN / sqrt(in_tail))
    return bits_of(chance * ((distance + noise) / float(tail[0])) ** (-1 / max(index, _LEAST_INDEX)))


def _two_sided(distance: float, freedom: float) -> float:
    """The bits of Student's t, by Wallace's approximation (Annals of Mathematical Statistics 30, 1959)."""
    normal = (8 * freedom + 1) / (8 * freedom + 3) * sqrt(freedom * log1p(distance * distance / freedom))
    return min(bits_of(erfc(normal / sqrt(2))), MOST_BITS)

"""How wrong an output is that was not made anew: the errors of the paper, and two more.

`stale` is the output of the last execution, `correct` what an execution would write now. After Esteves,
Galhardas, Veiga (INESC-ID TR 9/2016), section 2:
- Eq. 3, relative: m * sum |x - x'| / (n * sum max(|x|, |x'|)). The paper divides by the sum of the
  correct state, which may be less than the distance. Where numbers have both signs, this too could be
  above 1, and is taken as 1.
- Eq. 4, root mean square: sqrt(sum (x - x')^2 / n), in the unit of the column.
- rows: the share of elements that differ.
- classes: 1 if any element differs, else 0.
An element on one side only differs by its whole size, and where that is 0, by the mean size of all. NaN
equals NaN; NaN and a number differ as if the element were on one side only. An error of 0 says that
nothing differs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from lineage_service.triggering.changes.changed_elements import Elements, Flags, Numbers, aligned, difference
from lineage_service.triggering.changes.impact import SMALLEST

#: An error of the numbers in one column.
ErrorMeasure = Callable[[Elements, Elements, int], float]


def relative_error(stale: Elements, correct: Elements, column: int = 0) -> float:
    """Eq. 3, from 0 to 1."""
    old, new, alone = _numbers(stale, correct, column)
    differs = alone | (old != new)
    changed = int(differs.sum())
    if not changed:
        return 0.0
    size = np.maximum(np.abs(old), np.abs(new))
    largest = float(size.max()) or 1.0
    # Shares of the largest neither overflow nor add up to infinity.
    old, new, size = old / largest, new / largest, size / largest
    empty = alone & (size == 0)
    size[empty] = size.mean() or 1.0
    distance = np.where(empty, size, np.abs(new - old))
    return _between(changed / len(size) * float(distance.sum()) / float(size.sum()), 1.0)


def root_mean_square(stale: Elements, correct: Elements, column: int = 0) -> float:
    """Eq. 4, in the column's unit; an element on one side counts as 0 on the other."""
    old, new, alone = _numbers(stale, correct, column)
    if not (alone | (old != new)).any():
        return 0.0
    largest = float(np.maximum(np.abs(old), np.abs(new)).max()) or 1.0
    distance = new / largest - old / largest
    return _between(largest * math.sqrt(float((distance**2).mean())), np.finfo(np.float64).max)


def row_error(stale: Elements, correct: Elements, column: int = 0) -> float:
    """The share of elements, by all their columns, that differ or are on one side only."""
    keys, *_ = aligned(stale, correct)
    return len(difference(stale, correct)) / max(len(keys), 1)


def class_error(stale: Elements, correct: Elements, column: int = 0) -> float:
    """1 if the class of any element differs, else 0."""
    old, new, alone = _numbers(stale, correct, column)
    return float((alone | (old != new)).any())


#: By the names that a user says.
ERRORS: Mapping[str, ErrorMeasure] = {
    "relative": relative_error,
    "rmse": root_mean_square,
    "rows": row_error,
    "class": class_error,
}


def _numbers(stale: Elements, correct: Elements, column: int) -> tuple[Numbers, Numbers, Flags]:
    """The numbers of all elements on both sides, 0 where none is, and which are on one side alone."""
    _, old, new, was, remains = aligned(stale, correct)
    old, new = old[:, column], new[:, column]
    same = (old == new) | (np.isnan(old) & np.isnan(new))
    numbers = np.isfinite(old) & np.isfinite(new)
    alone = (was != remains) | (~numbers & ~same)
    old, new = (np.where(np.isfinite(side), side, 0.0) for side in (old, new))
    return old, new, alone


def _between(error: float, most: float) -> float:
    """An error of something that differs is never 0."""
    return min(max(error, SMALLEST), float(most))

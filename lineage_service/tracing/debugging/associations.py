"""Which properties bad outputs have and good ones have not, alone and at most three together. Pure.

A property is had by rows; an output has it if one of its rows does, and has several if one row has all of
them. Ranked by Ochiai's coefficient, then by the G statistic. Whether it is more than chance says Fisher's
exact test, which holds for few outputs, too; as many tests as properties were compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import exp, lgamma, log, sqrt

import numpy as np
import numpy.typing as npt

__all__ = ["Association", "Compared", "Property", "associations"]

#: Properties that are combined: the best ones, of different families.
_COMBINED = 12
_MOST_TOGETHER = 3
#: Of one list in so many, a property looks unusual by chance.
_FALSE_ALARMS = 20
_TINY = 1e-9

_Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Property:
    """`words` say it. Of one family, such as the ranges of a column, only the best is listed."""

    words: str
    family: str
    rows: _Flags
    is_plain: bool = True  # of equally good ones, those are listed first


@dataclass(frozen=True, slots=True)
class Association:
    """How many bad and good outputs have it."""

    words: str
    bad: int
    good: int
    ochiai: float
    g: float
    is_unusual: bool


@dataclass(frozen=True, slots=True)
class Compared:
    """The best associations, and how many properties there were."""

    associations: tuple[Association, ...]
    compared: int


@dataclass(frozen=True, eq=False)
class _Scored:
    properties: tuple[Property, ...]
    rows: _Flags
    bad: int
    good: int
    ochiai: float
    g: float

    @property
    def order(self) -> tuple[float, float, int, int]:
        contrived = sum(not one.is_plain for one in self.properties)
        return -round(self.ochiai, 9), -round(self.g, 9), len(self.properties), contrived


def associations(
    properties: Sequence[Property], first_rows: Sequence[int], is_bad: Sequence[bool]
) -> Compared:
    """Output k has the rows from `first_rows[k]` to before that of the next; each has at least one."""
    table = _Table(np.asarray(first_rows, np.int64), np.asarray(is_bad, bool))
    singles = [one for property_ in properties if (one := table.scored((property_,))) is not None]
    best = _best_of_families(singles)
    combined = best[:_COMBINED]
    together: list[_Scored] = []
    tried = 0
    for size in range(2, _MOST_TOGETHER + 1):
        for several in combinations(combined, size):
            tried += 1
            scored = table.scored(tuple(one.properties[0] for one in several))
            if scored is not None and scored.ochiai > _best_part(scored, best, together) + _TINY:
                together.append(scored)
    compared = len(properties) + tried
    ordered = sorted((*best, *together), key=lambda one: one.order)
    return Compared(tuple(table.association(one, compared) for one in ordered), compared)


def _best_of_families(singles: Sequence[_Scored]) -> list[_Scored]:
    best: dict[str, _Scored] = {}
    for one in singles:
        family = one.properties[0].family
        if family not in best or one.order < best[family].order:
            best[family] = one
    return sorted(best.values(), key=lambda one: one.order)


def _best_part(whole: _Scored, singles: Sequence[_Scored], together: Sequence[_Scored]) -> float:
    """The largest coefficient of what is a part of it."""
    parts = set(whole.properties)
    return max(
        (one.ochiai for one in (*singles, *together) if set(one.properties) < parts),
        default=0.0,
    )


class _Table:
    """Outputs, and which of them are bad."""

    def __init__(self, first_rows: npt.NDArray[np.int64], is_bad: _Flags) -> None:
        self._first_rows, self._is_bad = first_rows, is_bad
        self._bad = int(is_bad.sum())
        self._good = len(is_bad) - self._bad

    def scored(self, properties: tuple[Property, ...]) -> _Scored | None:
        """None where good outputs have it as often as bad ones, or more often."""
        rows = np.logical_and.reduce([one.rows for one in properties])
        outputs = np.logical_or.reduceat(rows, self._first_rows)
        bad = int((outputs & self._is_bad).sum())
        good = int(outputs.sum()) - bad
        if not bad or bad * self._good <= good * self._bad:
            return None
        ochiai = bad / sqrt(self._bad * (bad + good))
        return _Scored(properties, rows, bad, good, ochiai, self._g(bad, good))

    def association(self, scored: _Scored, compared: int) -> Association:
        words = " and ".join(one.words for one in scored.properties)
        chance = self._chance(scored.bad, scored.good)
        is_unusual = chance * compared * _FALSE_ALARMS <= 1
        return Association(words, scored.bad, scored.good, scored.ochiai, scored.g, is_unusual)

    def _g(self, bad: int, good: int) -> float:
        cells = ((bad, good), (self._bad - bad, self._good - good))
        total = self._bad + self._good
        return 2 * sum(
            count * log(count * total / (sum(row) * (self._bad, self._good)[at]))
            for row in cells
            for at, count in enumerate(row)
            if count
        )

    def _chance(self, bad: int, good: int) -> float:
        """That so many bad ones or more have it, if it has nothing to do with being bad."""
        having = bad + good
        return min(sum(self._probabilities(bad, having)), 1.0)

    def _probabilities(self, bad: int, having: int) -> Iterator[float]:
        total = self._bad + self._good
        of_all = _log_choices(total, having)
        for count in range(bad, min(having, self._bad) + 1):
            if having - count <= self._good:
                yield exp(_log_choices(self._bad, count) + _log_choices(self._good, having - count) - of_all)


def _log_choices(total: int, chosen: int) -> float:
    return lgamma(total + 1) - lgamma(chosen + 1) - lgamma(total - chosen + 1)

"""A test that is made of one wrong output row: what sets it apart from the others of its output. Pure.

Looks for a field of the row that is missing or no number where most rows have one, or a number far from the
median, or the largest or smallest of all. Its bounds are of the original output, so they stay where they are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from lineage_service.errors import InvalidQueryError

__all__ = ["ReadyTest", "ready_test"]

_SEPARATORS = ("\t", ",", ";", "|", " ")
#: Distances of the median from the others that make a number a wrong one.
_MOST_DISTANCES = 5.0
#: Of 1.4826 median distances of a normal distribution is its standard deviation.
_MAD = 1.4826
_NOTHING = frozenset(("", "null", "none", "nan", "\\n", '""'))
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?inf(?:inity)?", re.I)


@dataclass(frozen=True, slots=True)
class ReadyTest:
    """Fails on a row with the same words as the wrong one, and a wrong number or none in one field."""

    separator: str
    field: int
    words: tuple[tuple[int, str], ...]
    #: None: the field has no number.
    bound: float | None
    is_above: bool
    description: str

    def fails(self, text: str) -> bool:
        fields = text.split(self.separator)
        if len(fields) <= self.field or any(
            len(fields) <= at or fields[at] != word for at, word in self.words
        ):
            return False
        number = _number(fields[self.field])
        if self.bound is None:
            return number is None
        if number is None:
            return False
        return number > self.bound if self.is_above else number < self.bound


def ready_test(wrong: str, others: Iterable[str]) -> ReadyTest:
    """`others`: all rows of the output but `wrong`. Raises InvalidQueryError where it looks like them."""
    texts = list(others)
    separator = _separator(wrong)
    fields = wrong.split(separator)
    rows = [row for row in (text.split(separator) for text in texts) if len(row) == len(fields)]
    columns = [[_number(row[at]) for row in rows] for at in range(len(fields))]
    numeric = [at for at, column in enumerate(columns) if _is_numeric(column)]
    words = tuple((at, text) for at, text in enumerate(fields) if at not in numeric and _number(text) is None)
    tests = [
        test
        for at in numeric
        if (test := _of_field(separator, at, words, _number(fields[at]), columns[at])) is not None
    ]
    if not tests:
        raise InvalidQueryError(
            f"{wrong[:200]!r} looks like the other rows of its output: say what is wrong with it by --fails"
        )
    return max(tests, key=lambda test: test[0])[1]


def _of_field(
    separator: str,
    at: int,
    words: tuple[tuple[int, str], ...],
    number: float | None,
    column: Sequence[float | None],
) -> tuple[float, ReadyTest] | None:
    """How far it is from the others, and the test."""
    numbers = [other for other in column if other is not None and math.isfinite(other)]
    name = f"field {at + 1}"
    if number is None:
        why = f"{name} has no number, as {len(numbers):,} of {len(column):,} other rows have"
        return math.inf, ReadyTest(separator, at, words, None, True, why)
    centre = median(numbers)
    scale = _MAD * median(abs(other - centre) for other in numbers)
    is_above = number > centre
    distance = abs(number - centre) / scale if scale else (math.inf if number != centre else 0.0)
    side = "above" if is_above else "below"
    if distance > _MOST_DISTANCES and math.isfinite(distance):
        bound = centre + (1 if is_above else -1) * _MOST_DISTANCES * scale
        why = f"{name} is {side} {bound:.6g}: {_MOST_DISTANCES:g} deviations from the median {centre:.6g}"
        return distance, ReadyTest(separator, at, words, bound, is_above, why)
    extreme = max(numbers) if is_above else min(numbers)
    if number > extreme if is_above else number < extreme:
        size = "largest" if is_above else "smallest"
        why = f"{name} is {side} {extreme:.6g}, the {size} of the other rows"
        return min(distance, _MOST_DISTANCES), ReadyTest(separator, at, words, extreme, is_above, why)
    return None


def _separator(text: str) -> str:
    return max(_SEPARATORS, key=lambda separator: (text.count(separator), -_SEPARATORS.index(separator)))


def _is_numeric(column: Sequence[float | None]) -> bool:
    """Are most of them numbers?"""
    numbers = sum(number is not None and math.isfinite(number) for number in column)
    return 2 * numbers > len(column)


def _number(text: str) -> float | None:
    """None of what is missing, and of what is not a number."""
    text = text.strip().strip("\"'()[]")
    if text.lower() in _NOTHING or not _NUMBER.fullmatch(text):
        return None
    return float(text)

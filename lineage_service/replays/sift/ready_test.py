"""A test that is made of one wrong output row: what sets it apart from the others of its output. Pure.

Looks for a field of the row that is missing or no number where most rows have one, or a number far from the
median, or the largest or smallest of all. Its bounds are of the original output, so they stay where they are.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import median

from lineage_service.errors import InvalidQueryError

__all__ = ["ReadyTest", "ready_test"]

_SEPARATORS = ("\t", ",", ";", "|", " ")
#: Of rows such as name=3, where none of the others is there.
_OF_PAIRS = ("=", ":")
#: Distances of the median from the others that make a number a wrong one.
_MOST_DISTANCES = 5.0
#: Of 1.4826 median distances of a normal distribution is its standard deviation.
_MAD = 1.4826
_NOTHING = frozenset(("", "null", "none", "nan", "\\n", '""'))
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?inf(?:inity)?", re.I)


Name = int | str
"""Of a field: its place, or its name in a row of JSON."""


@dataclass(frozen=True, slots=True)
class ReadyTest:
    """Fails on a row with the same words as the wrong one, and a wrong number or none in one field."""

    separator: str
    field: Name
    words: tuple[tuple[Name, str], ...]
    #: None: the field has no number.
    bound: float | None
    is_above: bool
    description: str

    def fails(self, text: str) -> bool:
        fields = _fields(text, self.separator)
        is_of_form = bool(fields) and (isinstance(self.field, str) or self.field in fields)
        if not is_of_form or any(fields.get(at) != word for at, word in self.words):
            return False
        number = _number(fields.get(self.field, ""))
        if self.bound is None:
            return number is None
        if number is None:
            return False
        return number > self.bound if self.is_above else number < self.bound


def ready_test(wrong: str, others: Iterable[str]) -> ReadyTest:
    """`others`: all rows of the output but `wrong`. Raises InvalidQueryError where it looks like them."""
    separator = _separator(wrong)
    fields = _fields(wrong, separator)
    rows = [_fields(text, separator) for text in others]
    if separator:
        rows = [row for row in rows if len(row) == len(fields)]
    names = list(dict.fromkeys(chain(fields, *rows)))
    columns = {name: [_number(row.get(name, "")) for row in rows] for name in names}
    numeric = [name for name in names if _is_numeric(columns[name])]
    words = tuple(
        (name, text) for name, text in fields.items() if name not in numeric and _number(text) is None
    )
    tests = [
        test
        for name in numeric
        if (test := _of_field(separator, name, words, _number(fields.get(name, "")), columns[name]))
        is not None
    ]
    if not tests:
        raise InvalidQueryError(
            f"{wrong[:200]!r} looks like the other rows of its output: say what is wrong with it by --fails"
        )
    return max(tests, key=lambda test: test[0])[1]


def _fields(text: str, separator: str) -> Mapping[Name, str]:
    """The texts of a row's fields; of JSON those that are not null, none of what is no object."""
    if separator:
        return dict(enumerate(text.split(separator)))
    try:
        value = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except ValueError:
        return {}
    if not isinstance(value, dict):
        return {}
    return {
        name: field if isinstance(field, str) else json.dumps(field)
        for name, field in value.items()
        if field is not None
    }


def _of_field(
    separator: str,
    at: Name,
    words: tuple[tuple[Name, str], ...],
    number: float | None,
    column: Sequence[float | None],
) -> tuple[float, ReadyTest] | None:
    """How far it is from the others, and the test."""
    numbers = [other for other in column if other is not None and math.isfinite(other)]
    name = at if isinstance(at, str) else f"field {at + 1}"
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
    """That of its fields; nothing of a row that is an object of JSON."""
    if _fields(text, ""):
        return ""
    separators = _SEPARATORS if any(map(text.count, _SEPARATORS)) else _OF_PAIRS
    return max(separators, key=lambda separator: (text.count(separator), -separators.index(separator)))


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

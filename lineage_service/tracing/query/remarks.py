"""What stands out of many rows: a value that is far from those of all others. A hint for people, no proof.

At most three rows of a column stand out, and only if both hold of each:

- its modified z-score is above 3.5: 0.6745 * |x - median| / MAD (Iglewicz and Hoaglin, How to Detect and
  Handle Outliers, 1993; also in the NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.5.17). Unlike mean
  and standard deviation, median and MAD are not moved by the outlier itself;
- it is three times as far from the median as every row that does not stand out, so that the tail of a skewed
  distribution is not reported.

A column of texts is judged where all of them but a known word for nothing, such as NA, are numbers: for such
a word Spark takes a column of numbers for one of texts.

Pure. Knows nothing of what the columns mean.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lineage_service.lineage import Remark, SourceRow
from lineage_service.tracing.files.partition_folders import short_place
from lineage_service.tracing.files.text_fields import split_texts

__all__ = ["LEAST_ROWS", "numeric", "remarks_on"]

LEAST_ROWS = 5
_MOST_REMARKS = 3
_Z_SCORE, _NORMAL = 3.5, 0.6745
_DISTANCE_RATIO = 3.0
#: Of the rows that have the column, so many must have a number in it.
_NUMBERS = 0.9
_SAMPLE = 200
#: What people write for a missing number, in lower case. `nan` is none of them: it is a number.
_NOTHING = frozenset(
    ("na", "n/a", "null", "none", "nil", "-", "--", "---", "?", ".", "#n/a", "\\n", "missing")
)
#: Of the values of a column of texts, so many must be numbers.
_NUMBERS_OF_TEXTS = 0.5
#: A number that begins with 0 is a code.
_NUMBER = re.compile(r"\s*[+-]?(?:(?:0|[1-9][0-9]{0,300})(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?\s*")

Numbers = npt.NDArray[np.float64]


class _Column(NamedTuple):
    """One value for each row, NaN where it has none; `note` says of which rows, if that is not plain."""

    name: str
    numbers: Numbers
    note: str = ""


class _Outlier(NamedTuple):
    ratio: float
    at: int
    value: float
    low: float
    high: float


def remarks_on(rows: Sequence[tuple[str, SourceRow]], types: Mapping[str, str]) -> tuple[Remark, ...]:
    """The rows that stand out, the farthest first, each once. `rows` are (record id, row)."""
    farthest: dict[int, tuple[_Column, _Outlier]] = {}
    for column in _columns([row for _, row in rows], types):
        for outlier in _outliers(column.numbers):
            if outlier.at not in farthest or farthest[outlier.at][1].ratio < outlier.ratio:
                farthest[outlier.at] = column, outlier
    chosen = sorted(farthest.values(), key=lambda named: (-named[1].ratio, named[1].at))
    return tuple(_remark(*rows[outlier.at], column, outlier) for column, outlier in chosen[:_MOST_REMARKS])


def numeric(value: Any, type_: str = "") -> float | None:
    """A value of a column as a number; of texts only where the type is not that of texts."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    if not isinstance(value, str) or type_ in ("string", "binary", "date", "timestamp"):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if isfinite(number) and "_" not in value else None


def _columns(rows: Sequence[SourceRow], types: Mapping[str, str]) -> Iterator[_Column]:
    """The columns of numbers."""
    if any(row.columns is not None for row in rows):
        names = dict.fromkeys(name for row in rows if row.columns is not None for name in row.columns)
        for name in names:
            of_column = [None if row.columns is None else row.columns.get(name) for row in rows]
            if (numbers := _numbers(of_column, types.get(name, ""))) is not None:
                yield _Column(name, numbers)
            elif (of_texts := _of_texts(name, of_column, types.get(name, ""))) is not None:
                yield of_texts
        return
    fields = split_texts([row.text or "" for row in rows])
    for column in range(max(map(len, fields), default=0)):
        of_column = [row[column].strip() if column < len(row) else None for row in fields]
        if (numbers := _numbers([text or None for text in of_column], "")) is not None:
            yield _Column(f"column {column + 1}", numbers)


def _of_texts(name: str, values: Sequence[Any], type_: str) -> _Column | None:
    """The numbers of a column of texts; None where it has others than numbers and words for nothing."""
    if type_ not in ("string", ""):
        return None
    words: Counter[str] = Counter()
    numbers = np.full(len(values), np.nan)
    for at, value in enumerate(values):
        if not isinstance(value, str):
            if value is not None:
                return None
        elif value.strip().lower() in _NOTHING:
            words[value.strip()] += 1
        elif _NUMBER.fullmatch(value):
            numbers[at] = float(value)
        else:
            return None
    count = int(np.isfinite(numbers).sum())
    if not words or count < max(LEAST_ROWS, _NUMBERS_OF_TEXTS * (count + words.total())):
        return None
    left_out = " and ".join(f"{word} in {rows:,}" for word, rows in words.most_common(2))
    more = " and others" if len(words) > 2 else ""
    ending = "row" if words.total() == 1 else "rows"
    return _Column(name, numbers, f" (numbers of a column of texts; {left_out} {ending}{more} left out)")


def _numbers(values: Sequence[Any], type_: str) -> Numbers | None:
    """None of a column that is not of numbers, or does not look so at a few places."""
    some = [value for value in values[:: max(len(values) // _SAMPLE, 1)] if value is not None]
    if sum(numeric(value, type_) is not None for value in some) < len(some) / 2:
        return None
    numbers = [numeric(value, type_) for value in values]
    count = sum(number is not None for number in numbers)
    if count < max(LEAST_ROWS, _NUMBERS * sum(value is not None for value in values)):
        return None
    return np.array([np.nan if number is None else number for number in numbers], np.float64)


def _outliers(values: Numbers) -> list[_Outlier]:
    present = np.flatnonzero(np.isfinite(values))
    if len(present) < LEAST_ROWS:
        return []
    numbers = values[present]
    with np.errstate(over="ignore", invalid="ignore"):
        distances = np.abs(numbers - np.median(numbers))
    deviation = float(np.median(distances))
    order = np.argsort(-distances, kind="stable")
    for count in range(1, min(_MOST_REMARKS, len(order) - 1) + 1):
        far, near = float(distances[order[count - 1]]), float(distances[order[count]])
        if near > 0 and np.isfinite(far) and far >= _DISTANCE_RATIO * near:
            others = np.delete(numbers, order[:count])
            low, high = float(others.min()), float(others.max())
            return [
                _Outlier(float(distances[at]) / near, int(present[at]), float(numbers[at]), low, high)
                for at in order[:count].tolist()
                if deviation == 0 or _NORMAL * float(distances[at]) > _Z_SCORE * deviation
            ]
    return []


def _remark(record_id: str, row: SourceRow, column: _Column, outlier: _Outlier) -> Remark:
    value, low, high = (f"{number:,.10g}" for number in (outlier.value, outlier.low, outlier.high))
    place = f"{short_place(row.path)}:{row.line}"
    return Remark(
        record_id=record_id,
        path=row.path,
        row=row.row,
        line=row.line,
        column=column.name,
        value=outlier.value,
        low=outlier.low,
        high=outlier.high,
        text=f"{place}: {column.name} {value}, the others {low} to {high}{column.note}",
    )

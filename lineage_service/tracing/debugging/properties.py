"""What can be said of input rows: their file, partition and operations, and their columns. Pure.

Of a column: a value, that it is empty, that it is no number where most are, a range of numbers, and a length.
Rows that are texts are split at the delimiter that fits most of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from lineage_service.tracing.debugging.associations import Property
from lineage_service.tracing.files.text_fields import split_texts

__all__ = ["ComparedRow", "properties_of"]

#: Columns, values of a column and bounds of a range that are looked at.
_MOST_COLUMNS, _MOST_VALUES, _BOUNDS = 64, 50, 16
#: A column is one of numbers if so many of its values are, of those that are not empty.
_NUMBERS = 0.5
_LONGEST = 60

_Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """An input row, as far as it is known. `traits` are (family, words) of it, or of the output's way.

    Rows of one `source` have columns of their own.
    """

    is_bad: bool
    source: str = ""
    traits: frozenset[tuple[str, str]] = frozenset()
    columns: Mapping[str, Any] | None = None
    text: str | None = None


def properties_of(rows: Sequence[ComparedRow]) -> list[Property]:
    """All that some row of a bad output has."""
    is_bad = np.array([row.is_bad for row in rows], bool)
    properties = list(_traits(rows))
    for name, values in _columns(rows)[:_MOST_COLUMNS]:
        properties += _of_column(name, values, is_bad)
    return [one for one in properties if bool((one.rows & is_bad).any())]


def _traits(rows: Sequence[ComparedRow]) -> Iterator[Property]:
    traits = sorted(set[tuple[str, str]]().union(*(row.traits for row in rows if row.is_bad)))
    for family, words in traits:
        yield Property(words, family, np.array([(family, words) in row.traits for row in rows], bool))


def _columns(rows: Sequence[ComparedRow]) -> list[tuple[str, list[Any]]]:
    """Of each, a value for each row; `_NOTHING` where the row has no such column."""
    sources = sorted({row.source for row in rows if row.columns is not None or row.text is not None})
    return [
        (name if len(sources) == 1 else f"{name} of {source}", values)
        for source in sources
        for name, values in _columns_of(rows, source)
    ]


def _columns_of(rows: Sequence[ComparedRow], source: str) -> Iterator[tuple[str, list[Any]]]:
    places = [at for at, row in enumerate(rows) if row.source == source]
    named = {at: columns for at in places if (columns := rows[at].columns) is not None}
    for name in dict.fromkeys(name for columns in named.values() for name in columns):
        yield name, [named[at].get(name, _NOTHING) if at in named else _NOTHING for at in range(len(rows))]
    texts = {at: text for at in places if at not in named and (text := rows[at].text) is not None}
    fields = dict(zip(texts, split_texts(list(texts.values())), strict=True))
    width = max(map(len, fields.values()), default=0)
    for column in range(width):
        name = f"column {column + 1}" if width > 1 else "the row"
        yield name, [_field(fields.get(at), column) for at in range(len(rows))]


_NOTHING = object()


def _field(fields: Sequence[str] | None, column: int) -> Any:
    return _NOTHING if fields is None or column >= len(fields) else fields[column].strip()


def _of_column(name: str, values: Sequence[Any], is_bad: _Flags) -> Iterator[Property]:
    present = np.array([value is not _NOTHING for value in values], bool)
    empty = np.array([value is None or value == "" for value in values], bool)
    texts = [str(value) for value in values]
    yield Property(f"{name} is empty", f"{name}: empty", empty)
    numbers = np.array([_number(value) for value in values], np.float64)
    is_number = np.isfinite(numbers)
    filled = present & ~empty
    if is_number.sum() >= _NUMBERS * max(int(filled.sum()), 1):
        yield Property(f"{name} is no number", f"{name}: no number", filled & ~is_number)
        yield from _ranges(name, name, numbers, is_number, is_bad)
    lengths = np.array([float(len(text)) for text in texts])
    yield from _ranges(f"length of {name}", f"{name}: length", lengths, filled, is_bad)
    frequent = Counter(text for text, is_one in zip(texts, filled & is_bad, strict=True) if is_one)
    for text, _ in frequent.most_common(_MOST_VALUES):
        shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
        has = np.array([other == text for other in texts], bool) & filled
        yield Property(f"{name} = {shown}", f"{name}: value", has)


def _ranges(
    name: str, family: str, numbers: npt.NDArray[np.float64], is_one: _Flags, is_bad: _Flags
) -> Iterator[Property]:
    """From and up to numbers of bad rows and their neighbours."""
    distinct = np.unique(numbers[is_one])
    if len(distinct) < 2:
        return
    of_bad = np.unique(numbers[is_one & is_bad])
    at = distinct.searchsorted(of_bad)
    places = np.unique(np.concatenate((at[at > 0] - 1, at[at < len(distinct) - 1])))
    chosen = places[np.unique(np.linspace(0, len(places) - 1, min(_BOUNDS, len(places))).astype(int))]
    for place in chosen.tolist():
        low, high = float(distinct[place]), float(distinct[place + 1])
        yield Property(f"{name} >= {high:.10g}", f"{family}: range", is_one & (numbers >= high), False)
        yield Property(f"{name} <= {low:.10g}", f"{family}: range", is_one & (numbers <= low), False)


def _number(value: Any) -> float:
    """NaN of what is none."""
    if isinstance(value, bool) or value is None or value is _NOTHING:
        return float("nan")
    try:
        number = float(value)
    except (TypeError, ValueError):
        return float("nan")
    return number if isfinite(number) and "_" not in str(value) else float("nan")

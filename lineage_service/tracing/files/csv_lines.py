"""Lines of CSV as fields: their delimiter, the names of the columns, and the texts of some of them. Pure.

A field is null where nothing stands in it, and an empty text where it is quoted. Within quotes, a quote is
doubled or stands behind a backslash. A quoted field ends with its line at the latest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

__all__ = ["column_names", "delimiter_of", "fields_of"]

_DELIMITERS = (",", "\t", ";", "|")
_ESCAPED = re.compile(r'\\(["\\])|""')


def delimiter_of(lines: Sequence[str], columns: int | None = None) -> str:
    """The one that fits the quotes, and gives `columns` fields in the most lines.

    Without that number, the one that gives the same number in the most.
    """

    def fits(delimiter: str) -> tuple[bool, int, int, int]:
        counts = [len(fields_of(line, delimiter)) for line in lines]
        usual = columns or max(set(counts), key=counts.count, default=1)
        is_split = usual > 1 or columns == 1
        strays = sum(_has_strays(line, delimiter) for line in lines)
        return (is_split, -strays, sum(count == usual for count in counts), usual)

    return max(_DELIMITERS, key=fits) if lines else _DELIMITERS[0]


def _has_strays(line: str, delimiter: str) -> bool:
    """Are there quotes that begin or end within a field?"""
    return '"' in line and any(
        '"' in plain if quoted is None else plain for quoted, plain in _pieces(line, delimiter)
    )


def column_names(header: Sequence[str | None] | None, schema: Iterable[str], width: int) -> list[str]:
    """The names of the fields of a file, in their order.

    Those of its header, if it has one. Else those of the schema, where it names as many; else Spark's.
    """
    if header is not None:
        return [name if name is not None else f"_c{at}" for at, name in enumerate(header)]
    names = list(schema)
    return names if len(names) == width else [f"_c{at}" for at in range(width)]


def fields_of(line: str, delimiter: str) -> list[str | None]:
    if '"' not in line:
        return [field or None for field in line.split(delimiter)]
    return [
        plain or None if quoted is None else _ESCAPED.sub(_meant, quoted) + plain.rstrip()
        for quoted, plain in _pieces(line, delimiter)
    ]


def _pieces(line: str, delimiter: str) -> Iterator[tuple[str | None, str]]:
    """Of each field what stands in its quotes, None if it has none, and what stands behind them."""
    field, at = _field(delimiter), 0
    while True:
        match = field.match(line, at)
        assert match is not None
        yield match.group(1), match.group(2)
        at = match.end() + 1  # behind the delimiter
        if at > len(line):
            return


@lru_cache
def _field(delimiter: str) -> re.Pattern[str]:
    """A field: what stands in its quotes, and behind them. Quotes that never end go to the end."""
    return re.compile(rf'(?:"((?:[^"\\]|\\.|"")*)(?:"|\Z)|)([^{re.escape(delimiter)}]*)', re.DOTALL)


def _meant(match: re.Match[str]) -> str:
    return match.group(1) or '"'

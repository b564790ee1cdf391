"""Values of rows as JSON that no reader rounds. Pure.

Numbers are JSON numbers where every reader keeps them: whole ones up to 2^53 - 1, and finite floating-point
ones, in their shortest form. Larger whole numbers, decimals, NaN and infinities are strings.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import date, time
from decimal import Decimal
from typing import Any

__all__ = ["MOST_COLUMNS", "bounded", "exact_json", "plain", "read_json"]

#: What JavaScript keeps whole.
_MOST_WHOLE = (1 << 53) - 1
#: Columns of a row that are listed, and characters of all their values.
MOST_COLUMNS = 1_000
_MOST_CHARACTERS = 100_000
#: Values that are nested deeper are shown as their JSON text.
_MOST_DEPTH = 20


def exact_json(value: Any, depth: int = 0) -> Any:
    """A value of Python as JSON."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if -_MOST_WHOLE <= value <= _MOST_WHOLE else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else _not_finite(value)
    if isinstance(value, Mapping | list | tuple):
        return _nested(value, depth)
    return plain(value)


def _nested(value: Any, depth: int) -> Any:
    if depth >= _MOST_DEPTH:
        return json.dumps(value, ensure_ascii=False, default=plain)
    if isinstance(value, Mapping):
        return {str(name): exact_json(part, depth + 1) for name, part in value.items()}
    return [exact_json(part, depth + 1) for part in value]


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def plain(value: object) -> str:
    """What JSON has no form for: bytes as hexadecimal, times as ISO 8601, others as they are written."""
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if isinstance(value, date | time) else str(value)


def read_json(text: str) -> dict[str, Any] | None:
    """The columns of a row of JSON, exact; None of what is no object."""
    try:
        value = json.loads(text, parse_float=_exact_float, parse_int=_exact_int, parse_constant=str)
        if not isinstance(value, dict):
            return None
        columns = exact_json(value)
        assert isinstance(columns, dict)
        return _without_surrogates(columns) if "\\u" in text else columns
    except (ValueError, RecursionError):
        return None


def _exact_int(text: str) -> int | str:
    return int(text) if len(text) < 16 else exact_json(int(text)) if len(text) < 1_000 else text


def _exact_float(text: str) -> float | str:
    """As text where a double has another value."""
    number = float(text)
    return number if math.isfinite(number) and Decimal(repr(number)) == Decimal(text) else text


def _without_surrogates(value: Any) -> Any:
    """Half a character can be written in JSON and is none in UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_without_surrogates(name): _without_surrogates(part) for name, part in value.items()}
    return [_without_surrogates(part) for part in value] if isinstance(value, list) else value


def bounded(columns: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """The first columns, with values that are cut behind so many characters; whether anything is missing."""
    listed = dict(_first(columns.items()))
    is_cut, left = len(listed) < len(columns), _MOST_CHARACTERS
    for name, value in listed.items():
        if not isinstance(value, str | dict | list):
            continue
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if len(text) > left:
            listed[name] = text[:left] + "…"
            is_cut = True
        left = max(left - len(text), 0)
    return listed, is_cut


def _first(items: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Any]]:
    return (item for _, item in zip(range(MOST_COLUMNS), items, strict=False))

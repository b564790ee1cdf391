"""The order of rows by one of their columns. Pure.

Numbers come first, by value, then texts by their characters, then rows without a value; so both ways. A text
that is a number counts as one, unless its column is known to be one of texts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

__all__ = ["Place", "ordered"]

Place = tuple[int, int]
"""(partition, offset)."""
_TEXTS = frozenset(("string", "binary", "date", "timestamp"))


def ordered(
    places: Sequence[Place], values: Mapping[Place, Any], type_: str = "", *, desc: bool = False
) -> list[Place]:
    """The places by the values of their rows; equal ones by place."""
    numbers: dict[Place, tuple[bool, Decimal]] = {}
    texts: dict[Place, str] = {}
    missing: list[Place] = []
    for place in sorted(places):
        value = values.get(place)
        number = None if type_ in _TEXTS else _number(value)
        if number is not None:  # NaN is larger than every number, as in Spark
            numbers[place] = (True, Decimal(0)) if number.is_nan() else (False, number)
        elif value is None:
            missing.append(place)
        else:
            texts[place] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # A reversed sort is stable too: equal ones stay in their order.
    return [
        *sorted(numbers, key=numbers.__getitem__, reverse=desc),
        *sorted(texts, key=texts.__getitem__, reverse=desc),
        *missing,
    ]


def _number(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = Decimal(value.strip() if isinstance(value, str) else repr(value))
    except InvalidOperation:
        return None
    return None if number.is_snan() else number

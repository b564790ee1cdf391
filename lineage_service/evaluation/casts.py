"""Casts whose result is the same in each mode of Spark, in each time zone and in each version. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import Context, Decimal
from typing import Any

from lineage_service.evaluation.values import INTEGERS, Result, Unknown, Value, fits

__all__ = ["cast", "decimal_of", "parsed"]

_WHOLE = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_FLOAT = re.compile(r"[+-]?[0-9]{1,300}(\.[0-9]{1,300})?", re.ASCII)
_DECIMAL = re.compile(r"decimal\(([0-9]+),([0-9]+)\)")
_DATE = re.compile(r"([1-9][0-9]{3})-([0-9]{2})-([0-9]{2})", re.ASCII)
#: Of Spark's decimals and of texts that become some.
_EXACT = Context(prec=100)
#: Whole numbers that each float has exactly.
_EXACT_IN_FLOAT = 1 << 24
#: Before, files may be in another calendar than Spark's.
_FIRST_YEAR = 1900


def cast(value: Value, to: str) -> Result:
    if value.type == to:
        return value
    if value.data is None:
        return Value(to, None)
    convert = _CASTS.get(_family(value.type))
    data = None if convert is None else convert(value.data, to)
    return Unknown(f"a cast from {value.type} to {to}") if data is None else Value(to, data)


def parsed(text: str, to: str) -> Any:
    """A text as a value of a type where it is written as each reader reads it; else None."""
    if to == "string":
        return text
    if to in INTEGERS:
        return int(text) if _WHOLE.fullmatch(text) and fits(int(text), to) else None
    if to == "double":
        return float(text) if _FLOAT.fullmatch(text) else None
    if to == "boolean":
        return {"true": True, "false": False}.get(text)
    if to == "date":
        return _date(text)
    return decimal_of(Decimal(text), to) if _FLOAT.fullmatch(text) and len(text) < 40 else None


def decimal_of(number: Decimal, to: str) -> Decimal | None:
    """None where it is no decimal type, or does not have all its digits."""
    match = _DECIMAL.fullmatch(to)
    if match is None:
        return None
    digits, scale = int(match[1]), int(match[2])
    scaled = _EXACT.scaleb(number, scale)
    is_whole = scaled == _EXACT.to_integral_value(scaled)
    return number if is_whole and abs(scaled) < Decimal(f"1e{digits}") else None


def _date(text: str) -> date | None:
    match = _DATE.fullmatch(text)
    try:
        return date(*map(int, match.groups())) if match is not None else None
    except ValueError:
        return None


def _of_whole(data: int, to: str) -> Any:
    if to in INTEGERS:
        return data if fits(data, to) else None
    if to == "double" or (to == "float" and abs(data) <= _EXACT_IN_FLOAT):
        return float(data)
    return str(data) if to == "string" else decimal_of(Decimal(data), to)


def _of_float(data: float, to: str) -> Any:
    return data if to == "double" else None


def _of_decimal(data: Decimal, to: str) -> Any:
    return float(data) if to == "double" else decimal_of(data, to)


def _of_date(data: date, to: str) -> Any:
    return data.isoformat() if to == "string" and data.year >= _FIRST_YEAR else None


def _of_boolean(data: bool, to: str) -> Any:
    if to == "string":
        return "true" if data else "false"
    return int(data) if to in INTEGERS else None


def _family(type: str) -> str:
    return "decimal" if type.startswith("decimal(") else type


_CASTS: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(INTEGERS, _of_whole),
    "float": _of_float,
    "decimal": _of_decimal,
    "string": parsed,
    "date": _of_date,
    "boolean": _of_boolean,
}

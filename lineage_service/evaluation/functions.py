"""Functions of Spark by the names of their classes, where each version surely gives the same. Pure.

A function gets values of which none is null.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from lineage_service.evaluation.values import INTEGERS, Result, Unknown, Value, compared, fits, truth

__all__ = ["STRICT", "like"]

Function = Callable[..., Result]


def _unknown(name: str, *values: Value) -> Unknown:
    return Unknown(f"{name} of {' and '.join(value.type for value in values)}")


def _comparison(name: str, holds: Callable[[int], bool]) -> Function:
    def compare(one: Value, other: Value) -> Result:
        order = compared(one, other)
        return _unknown(name, one, other) if order is None else truth(holds(order))

    return compare


def _arithmetic(name: str, compute: Callable[[Any, Any], Any]) -> Function:
    def calculate(one: Value, other: Value) -> Result:
        if one.type != other.type or one.type not in (*INTEGERS, "double"):
            return _unknown(name, one, other)
        if name in ("Divide", "Remainder") and (
            not other.data or (one.type == "double") != (name == "Divide")
        ):
            return _unknown(name, one, other)
        data = compute(one.data, other.data)
        if one.type in INTEGERS and not fits(data, one.type):
            return _unknown(name, one, other)
        return Value(one.type, data)

    return calculate


def _remainder(one: int, other: int) -> int:
    """It has the sign of the dividend."""
    return int(math.copysign(1, one)) * (abs(one) % abs(other))


def _of_texts(name: str, compute: Callable[[str, str], bool]) -> Function:
    def calculate(one: Value, other: Value) -> Result:
        is_text = one.type == other.type == "string"
        return truth(compute(one.data, other.data)) if is_text else _unknown(name, one, other)

    return calculate


def _of_ascii(name: str, compute: Callable[[str], Any], type: str) -> Function:
    def calculate(one: Value) -> Result:
        is_plain = one.type == "string" and one.data.isascii()
        return Value(type, compute(one.data)) if is_plain else _unknown(name, one)

    return calculate


def _of_date(name: str, part: str) -> Function:
    def calculate(one: Value) -> Result:
        return Value("int", getattr(one.data, part)) if one.type == "date" else _unknown(name, one)

    return calculate


def _minus(one: Value) -> Result:
    if one.type == "double":
        return Value("double", -one.data)
    is_whole = one.type in INTEGERS and fits(-one.data, one.type)
    return Value(one.type, -one.data) if is_whole else _unknown("UnaryMinus", one)


def _same(one: Value) -> Result:
    return one


def _normalized(one: Value) -> Result:
    return Value(one.type, one.data + 0.0) if isinstance(one.data, float) else one


def like(one: Value, pattern: Value, escape: str) -> Result:
    if not (one.type == pattern.type == "string"):
        return _unknown("Like", one, pattern)
    expression, at, text = "", 0, pattern.data
    while at < len(text):
        letter = text[at]
        if letter == escape:
            at += 1
            if at == len(text) or text[at] not in ("%", "_", escape):
                return Unknown("Like with such an escape")
            expression += re.escape(text[at])
        else:
            expression += {"%": ".*", "_": "."}.get(letter) or re.escape(letter)
        at += 1
    return truth(re.fullmatch(expression, one.data, re.DOTALL) is not None)


#: Null where any argument is null.
STRICT: Mapping[str, Function] = {
    "EqualTo": _comparison("EqualTo", lambda order: order == 0),
    "LessThan": _comparison("LessThan", lambda order: order < 0),
    "LessThanOrEqual": _comparison("LessThanOrEqual", lambda order: order <= 0),
    "GreaterThan": _comparison("GreaterThan", lambda order: order > 0),
    "GreaterThanOrEqual": _comparison("GreaterThanOrEqual", lambda order: order >= 0),
    "StartsWith": _of_texts("StartsWith", str.startswith),
    "EndsWith": _of_texts("EndsWith", str.endswith),
    "Contains": _of_texts("Contains", lambda one, other: other in one),
    "Add": _arithmetic("Add", lambda one, other: one + other),
    "Subtract": _arithmetic("Subtract", lambda one, other: one - other),
    "Multiply": _arithmetic("Multiply", lambda one, other: one * other),
    "Divide": _arithmetic("Divide", lambda one, other: one / other),
    "Remainder": _arithmetic("Remainder", _remainder),
    "UnaryMinus": _minus,
    "Upper": _of_ascii("Upper", str.upper, "string"),
    "Lower": _of_ascii("Lower", str.lower, "string"),
    "Length": _of_ascii("Length", len, "int"),
    "Year": _of_date("Year", "year"),
    "Month": _of_date("Month", "month"),
    "DayOfMonth": _of_date("DayOfMonth", "day"),
    "KnownFloatingPointNormalized": _same,
    "NormalizeNaNAndZero": _normalized,
    "KnownNotNull": _same,
}

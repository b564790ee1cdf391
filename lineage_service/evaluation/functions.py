"""Functions of Spark by the names of their classes, where each version surely gives the same. Pure.

A function gets values of which none is null.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from lineage_service.evaluation.values import INTEGERS, Result, Unknown, Value, compared, fits, truth

__all__ = ["STRICT", "like"]

Function = Callable[..., Result]


def _unknown(name: str, *values: Value) -> Unknown:
    return Unknown(f"`{name}` of {' and '.join(value.type for value in values)}")


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


def _of_text(name: str, compute: Callable[[str], Any], type: str) -> Function:
    def calculate(one: Value) -> Result:
        return Value(type, compute(one.data)) if one.type == "string" else _unknown(name, one)

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
    pieces, at, text = [""], 0, pattern.data
    while at < len(text):
        letter = text[at]
        if letter == escape:
            at += 1
            if at == len(text) or text[at] not in ("%", "_", escape):
                return Unknown("`LIKE` with such an escape")
            pieces[-1] += re.escape(text[at])
        elif letter == "%":
            pieces.append("")
        else:
            pieces[-1] += "." if letter == "_" else re.escape(letter)
        at += 1
    return truth(_is_of_pieces(one.data, pieces))


def _is_of_pieces(text: str, pieces: Sequence[str]) -> bool:
    """Has it all of them in this order, with anything between? Each is taken where it stands first."""
    first, *others = (re.compile(piece, re.DOTALL) for piece in pieces)
    if not others:
        return first.fullmatch(text) is not None
    match = first.match(text)
    *between, _ = others
    for piece in between:
        match = piece.search(text, match.end()) if match is not None else None
    last = re.compile(rf"{pieces[-1]}\Z", re.DOTALL)
    return match is not None and last.search(text, match.end()) is not None


def _substring(text: Value, begin: Value, length: Value) -> Result:
    """By characters from 1; below 0 from the end. Before the beginning there is nothing, and it counts."""
    if text.type != "string" or not (begin.type == length.type == "int"):
        return _unknown("Substring", text, begin, length)
    size = len(text.data)
    first = begin.data - 1 if begin.data > 0 else size + begin.data if begin.data < 0 else 0
    end = min(first + length.data, size)
    return Value("string", text.data[max(first, 0) : max(end, 0)] if length.data > 0 else "")


def _concat(*parts: Value) -> Result:
    if not parts or any(part.type != "string" for part in parts):
        return _unknown("Concat", *parts)
    return Value("string", "".join(part.data for part in parts))


_SPACE = Value("string", " ")


def _trimmed(name: str, strip: Callable[[str, str], str]) -> Function:
    """Spaces alone, or the characters of a second argument."""

    def calculate(text: Value, signs: Value = _SPACE) -> Result:
        is_text = text.type == signs.type == "string" and bool(signs.data)
        return Value("string", strip(text.data, signs.data)) if is_text else _unknown(name, text, signs)

    return calculate


def _abs(one: Value) -> Result:
    if one.type == "double":
        return Value("double", abs(one.data))
    is_sure = one.type in INTEGERS and fits(abs(one.data), one.type)
    return Value(one.type, abs(one.data)) if is_sure else _unknown("Abs", one)


def _days_later(name: str, sign: int) -> Function:
    def calculate(day: Value, count: Value) -> Result:
        if day.type != "date" or count.type not in ("tinyint", "smallint", "int"):
            return _unknown(name, day, count)
        try:
            return Value("date", day.data + timedelta(days=sign * count.data))
        except OverflowError:
            return _unknown(name, day, count)

    return calculate


def _days_between(end: Value, start: Value) -> Result:
    if not (end.type == start.type == "date"):
        return _unknown("DateDiff", end, start)
    return Value("int", (end.data - start.data).days)


#: Expressions that Java and Python understand alike: characters, escaped ones, classes, one repeat each.
_PLAIN_EXPRESSION = re.compile(
    r"(?:(?:[A-Za-z0-9 _,:;@/=<>~#!'\"%.-]|\\[dwDW.\\+*?|()\[\]{}^$-]|\[\^?[A-Za-z0-9 _,:;@]+\]"
    r"|\[_*(?:(?:0-9|a-z|A-Z)_*)+\])[*+?]?|[\^$|])*"
)
#: Ways to match a text that are tried: one more repeat multiplies them by its length.
_MOST_WAYS = 1_000_000


def _matches(text: Value, pattern: Value) -> Result:
    """RLike, of simple expressions and of texts of printable ASCII."""
    if not (text.type == pattern.type == "string"):
        return _unknown("RLike", text, pattern)
    is_plain = text.data.isascii() and text.data.isprintable()
    is_simple = _PLAIN_EXPRESSION.fullmatch(pattern.data) is not None
    repeats = len(re.findall("[*+?]", pattern.data))
    if not (is_plain and is_simple) or max(len(text.data), 2) ** (repeats + 1) > _MOST_WAYS:
        return Unknown("`RLIKE` with such an expression or text")
    try:
        return truth(re.search(pattern.data, text.data, re.ASCII) is not None)
    except re.error:
        return Unknown("`RLIKE` with such an expression or text")


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
    "Length": _of_text("Length", len, "int"),
    "Substring": _substring,
    "Concat": _concat,
    "StringTrim": _trimmed("StringTrim", str.strip),
    "StringTrimLeft": _trimmed("StringTrimLeft", str.lstrip),
    "StringTrimRight": _trimmed("StringTrimRight", str.rstrip),
    "RLike": _matches,
    "Abs": _abs,
    "DateAdd": _days_later("DateAdd", 1),
    "DateSub": _days_later("DateSub", -1),
    "DateDiff": _days_between,
    "Year": _of_date("Year", "year"),
    "Month": _of_date("Month", "month"),
    "DayOfMonth": _of_date("DayOfMonth", "day"),
    "KnownFloatingPointNormalized": _same,
    "NormalizeNaNAndZero": _normalized,
    "KnownNotNull": _same,
}

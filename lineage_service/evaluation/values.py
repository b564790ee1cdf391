"""Values of rows and expressions, each with Spark's simple type. Pure.

Numbers are Python's, decimals `Decimal`, timestamps `datetime` (with UTC where Spark's have a zone), structs
dictionaries of values.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

__all__ = ["FLOATS", "INTEGERS", "NULL", "Result", "Unknown", "Value", "compared", "fits", "literal", "truth"]

#: Type -> bits.
INTEGERS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
FLOATS = frozenset(("float", "double"))
_EPOCH = datetime(1970, 1, 1)
#: Of what compares by its own order in Python as in Spark.
_ORDERED = {"boolean": bool, "date": date, "timestamp": datetime, "timestamp_ntz": datetime}


@dataclass(frozen=True, slots=True)
class Value:
    """`data` is None for null."""

    type: str
    data: Any


@dataclass(frozen=True, slots=True)
class Unknown:
    """What is not known to be what Spark computes: `why` is a noun, and `clause` says what of it."""

    why: str
    clause: str = "which is not computed again here"

    def __str__(self) -> str:
        return f"{self.why}, {self.clause}"


Result = Value | Unknown
NULL = Value("void", None)


def truth(data: bool | None) -> Value:
    return Value("boolean", data)


def fits(number: int, type: str) -> bool:
    bits = INTEGERS[type]
    return -(1 << (bits - 1)) <= number < 1 << (bits - 1)


def literal(type: str, text: str | None) -> Result:
    """A literal as Catalyst holds it: dates in days since 1970, timestamps in microseconds."""
    if text is None:
        return Value(type, None)
    try:
        return Value(type, _data(type, text))
    except (LookupError, ValueError, OverflowError, ArithmeticError):
        return Unknown(f"the literal {text[:40]}")


def _data(type: str, text: str) -> Any:
    if type == "string":
        return text
    if type == "boolean":
        return {"true": True, "false": False}[text]
    if type in INTEGERS:
        return int(text)
    if type == "float":
        return struct.unpack("f", struct.pack("f", float(text)))[0]
    if type == "double":
        return float(text)
    if type.startswith("decimal("):
        return Decimal(text)
    if type == "date":
        return _EPOCH.date() + timedelta(days=int(text))
    time = _EPOCH + timedelta(microseconds=int(text))
    return time.replace(tzinfo=timezone.utc) if type == "timestamp" else time


def compared(one: Value, other: Value) -> int | None:
    """Below 0, 0, or above 0, of values that are not null; None where their order is not known."""
    if _family(one.type) != _family(other.type):
        return None
    left, right = one.data, other.data
    if one.type in FLOATS:
        return _of_floats(left, right)
    if one.type == "string":
        left, right = left.encode(), right.encode()
    elif one.type not in INTEGERS and not one.type.startswith("decimal("):
        kind = _ORDERED.get(one.type)
        if kind is None or not (isinstance(left, kind) and isinstance(right, kind)):
            return None
    return int(left > right) - int(left < right)


def _family(type: str) -> str:
    return "decimal" if type.startswith("decimal(") else type


def _of_floats(left: float, right: float) -> int:
    """NaN equals NaN and is the greatest; both zeros are equal."""
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) - math.isnan(right)
    return (left > right) - (left < right)

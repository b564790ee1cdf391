"""Expressions and values as people write them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from lineage_service.evaluation.values import Unknown, Value, literal

__all__ = ["described", "value_text"]

_BETWEEN = {
    **{"And": "AND", "Or": "OR", "EqualTo": "=", "EqualNullSafe": "<=>", "LessThan": "<", "Like": "LIKE"},
    **{"LessThanOrEqual": "<=", "GreaterThan": ">", "GreaterThanOrEqual": ">=", "Add": "+"},
    **{"Subtract": "-", "Multiply": "*", "Divide": "/", "Remainder": "%"},
}
_BEHIND = {"IsNull": "IS NULL", "IsNotNull": "IS NOT NULL"}
_SILENT = frozenset(("KnownFloatingPointNormalized", "NormalizeNaNAndZero", "KnownNotNull", "Cast"))
_MOST_CHARACTERS = 80


def described(expression: Mapping[str, Any]) -> str:
    name, inputs = expression.get("of"), [_inner(part) for part in expression.get("inputs", ())]
    if name is None:
        return _leaf(expression)
    if not inputs:
        return f"{name.lower()}()"
    if name in _SILENT:
        return described(expression["inputs"][0])
    if name in _BETWEEN:
        return f" {_BETWEEN[name]} ".join(inputs)
    if name in _BEHIND:
        return f"{inputs[0]} {_BEHIND[name]}"
    if name == "Not":
        return f"NOT {inputs[0]}"
    if name == "In":
        return f"{inputs[0]} IN ({', '.join(inputs[1:])})"
    if name == "AtLeastNNonNulls":
        return f"at least {expression.get('value')} of ({', '.join(inputs)}) IS NOT NULL"
    if name == "GetStructField":
        return f"{inputs[0]}.{expression.get('name')}"
    return f"{name.lower()}({', '.join(inputs)})"


def _inner(expression: Mapping[str, Any]) -> str:
    text = described(expression)
    return f"({text})" if expression.get("of") in _BETWEEN or expression.get("of") == "Not" else text


def _leaf(expression: Mapping[str, Any]) -> str:
    if "column" in expression:
        return str(expression.get("name") or "a column")
    if "type" in expression:
        value = literal(expression["type"], expression.get("value"))
        return "?" if isinstance(value, Unknown) else value_text(value)
    return f"{expression.get('unknown', '?')}()"


def value_text(value: Value) -> str:
    """Texts in quotes, and cut where they are long."""
    data = value.data
    if data is None:
        return "null"
    if isinstance(data, str):
        return f"'{data}'" if len(data) <= _MOST_CHARACTERS else f"'{data[:_MOST_CHARACTERS]}…'"
    if isinstance(data, bool):
        return "true" if data else "false"
    return data.isoformat() if isinstance(data, date) else str(data)

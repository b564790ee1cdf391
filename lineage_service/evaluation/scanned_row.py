"""The columns of a row of a file, as Spark's scan reads them, where that is sure. Pure.

What Spark may read in another way is `Unknown`: quotes in fields, texts that are not written as their type,
what has a time zone. A line that Spark may take for malformed is unknown as a whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Protocol

from lineage_service.evaluation.casts import decimal_of, parsed
from lineage_service.evaluation.values import INTEGERS, Result, Unknown, Value, fits

__all__ = ["TypedColumn", "of_columnar", "of_folders", "of_json_text", "of_line"]

#: In place of a value; who reads the column says which it is.
_OTHERWISE = Unknown("", "whose value in the file may be read in several ways")
_FIRST_YEAR = 1900
#: The column that Spark puts malformed lines of CSV into, by its usual name.
_MALFORMED = "_corrupt_record"
#: Types of which a value can be had at all.
_SIMPLE = frozenset(("string", "boolean", "date", "double", *INTEGERS))


class TypedColumn(Protocol):
    """A column of a schema; `type` is Spark's simple type."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...


def of_line(
    format: str, line: str, columns: Sequence[TypedColumn], options: Mapping[str, str]
) -> dict[str, Result]:
    """Of text, CSV and JSON. `columns` are those in the file, in their order."""
    if format == "text":
        return {column.name: Value("string", line) for column in columns[:1] if column.type == "string"}
    if format.startswith("csv"):
        return _csv(line, columns, options)
    return _json(line, columns) if format == "json" else {}


def of_folders(values: Mapping[str, str | None], columns: Sequence[TypedColumn]) -> dict[str, Result]:
    """Of partition columns, by what the names of folders say."""
    return {
        column.name: _of_text(values[column.name], column.type) for column in columns if column.name in values
    }


def of_columnar(
    values: Mapping[str, Any], types: Mapping[str, str], columns: Sequence[TypedColumn]
) -> dict[str, Result]:
    """Of a row of Parquet or ORC, as Arrow gives it to Python. `types` are those in the file."""
    return {
        column.name: _typed(values[column.name], column.type)
        for column in columns
        if column.name in values and types.get(column.name) == column.type
    }


def of_json_text(text: str, columns: Sequence[TypedColumn]) -> dict[str, Result]:
    """Of a row of Parquet or ORC, as the service shows it (`columnar_rows.json_text`).

    Its types are not said there: what would be shown alike of another type is unknown.
    """
    try:
        shown = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return {
        column.name: _typed(_written(shown[column.name], column.type), column.type)
        for column in columns
        if column.name in shown
    }


def _written(value: Any, type: str) -> Any:
    """What JSON has no form for stands there as a text: bytes as hexadecimal."""
    if not isinstance(value, str):
        return value
    try:
        if type == "date":
            return date.fromisoformat(value)
        if type == "timestamp":
            return datetime.fromisoformat(value)
        if type.startswith("decimal("):
            return Decimal(value)
    except (ValueError, ArithmeticError):
        return _Nothing()
    return value if type != "string" or _HEXADECIMAL.fullmatch(value) is None else _Nothing()


_HEXADECIMAL = re.compile(r"([0-9a-f]{2})+")


# -- CSV ------------------------------------------------------------------------------------------------


def _csv(line: str, columns: Sequence[TypedColumn], options: Mapping[str, str]) -> dict[str, Result]:
    separator = options.get("sep", "")
    if len(separator) != 1 or any(sign in line for sign in "\\\r\n\0\ufeff\ufffd") or separator in "\"\\'#":
        return {}
    fields, names = _fields(line, separator), [column.name for column in columns]
    if len(fields) != len(columns) or _MALFORMED in names:  # malformed, or it may be
        return {}
    return {
        column.name: _of_text(field or None, column.type)
        for column, field in zip(columns, fields, strict=True)
    }


def _fields(line: str, separator: str) -> list[str]:
    """Of a line that surely has these; else none: a quote within a field, or a quoted field that is empty."""
    if '"' not in line:
        return line.split(separator)
    field = re.compile(f'(?:"([^"]+)"|([^"{re.escape(separator)}]*))(?:{re.escape(separator)}|$)')
    fields, at, line = [], 0, line + separator
    while at < len(line):
        match = field.match(line, at)
        if match is None:
            return []
        fields.append(match[1] or match[2])
        at = match.end()
    return fields


def _of_text(text: str | None, type: str) -> Result:
    if type not in _SIMPLE and not type.startswith("decimal("):
        return _OTHERWISE
    if text is None:
        return Value(type, None)
    data = parsed(text, type)
    if data is None or (isinstance(data, date) and data.year < _FIRST_YEAR):
        return _OTHERWISE
    return Value(type, data)


# -- JSON -----------------------------------------------------------------------------------------------


class _Number(str):
    """A number as it is written."""


def _json(line: str, columns: Sequence[TypedColumn]) -> dict[str, Result]:
    try:
        row = json.loads(
            line, parse_int=_Number, parse_float=_Number, parse_constant=_refused, object_pairs_hook=_members
        )
    except (ValueError, RecursionError):
        return {}
    if not isinstance(row, dict):
        return {}
    values = {column.name: _member(row.get(column.name), column.type) for column in columns}
    # A value that does not fit its column may make the whole line a malformed one.
    return values if all(isinstance(value, Value) for value in values.values()) else {}


def _refused(name: str) -> Any:
    raise ValueError(name)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a name stands twice")
    return dict(pairs)


def _member(value: Any, type: str) -> Result:
    if value is None and (type in _SIMPLE or type.startswith("decimal(")):
        return Value(type, None)
    if type == "string" and isinstance(value, str) and not isinstance(value, _Number):
        is_text = value.isprintable() and not any("\ud800" <= letter <= "\udfff" for letter in value)
        return Value(type, value) if is_text else _OTHERWISE
    if type == "boolean" and isinstance(value, bool):
        return Value(type, value)
    if isinstance(value, _Number) and (type in INTEGERS or type == "double"):
        data = parsed(str(value), type)
        return _OTHERWISE if data is None else Value(type, data)
    return _OTHERWISE


# -- Parquet and ORC ------------------------------------------------------------------------------------


def _typed(value: Any, type: str) -> Result:
    """A value as Arrow gives it to Python."""
    if value is None:
        is_simple = type in (*_SIMPLE, "float") or type.startswith("decimal(")
        return Value(type, None) if is_simple else _OTHERWISE
    if type in INTEGERS:
        is_sure = isinstance(value, int) and not isinstance(value, bool) and fits(value, type)
    elif type == "string":
        is_sure = isinstance(value, str) and "\ufffd" not in value
    elif type.startswith("decimal("):
        is_sure = isinstance(value, Decimal) and decimal_of(value, type) is not None
    elif type == "timestamp":
        is_sure = isinstance(value, datetime) and value.tzinfo is not None and value.year >= _FIRST_YEAR
    elif type == "date":
        is_sure = isinstance(value, date) and value.year >= _FIRST_YEAR
    else:
        is_sure = isinstance(value, {"boolean": bool, "float": float, "double": float}.get(type, _Nothing))
    return Value(type, value) if is_sure else _OTHERWISE


class _Nothing:
    """Of no value."""

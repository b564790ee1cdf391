"""The columns of an Iceberg table by a schema of its metadata, and what bounds of them say. Pure.

Columns are known by their numbers, so that a column may be called otherwise in older data files.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from typing import Any, NamedTuple

from lineage_service.conditions.column_types import of_schema
from lineage_service.tracing.tables.table_version import TableColumn

__all__ = ["bounds_by_name", "columns_of_schema", "names_by_id"]

_SPARK_NAMES = {
    **{"long": "bigint", "timestamp": "timestamp_ntz", "timestamptz": "timestamp"},
    **{"timestamp_ns": "timestamp_ntz", "timestamptz_ns": "timestamp"},
}
#: Types whose defaults are JSON as a condition can take them.
_PLAIN = frozenset(("boolean", "int", "long", "float", "double", "string", "date", "timestamp"))
_EPOCH = date(1970, 1, 1)


class _Column(NamedTuple):
    """A column of a schema as `of_schema` reads it."""

    name: str
    type: str
    fields: tuple[_Column, ...]


def columns_of_schema(schema: Mapping[str, Any]) -> tuple[TableColumn, ...]:
    """`schema` is a struct of the metadata. Raises KeyError, TypeError, ValueError of what is none."""
    return tuple(map(_column, schema["fields"]))


def names_by_id(schema: Mapping[str, Any]) -> dict[int, str]:
    """Of the columns that are in no struct."""
    return {int(field["id"]): str(field["name"]) for field in schema["fields"]}


def _column(field: Mapping[str, Any]) -> TableColumn:
    [type_] = of_schema([_named(field)]).values()
    default = field.get("initial-default")
    if default is not None and not (field["type"] in _PLAIN or str(field["type"]).startswith("decimal")):
        raise ValueError(f"column {field['name']} has a default of type {field['type']}")
    return TableColumn(
        name=field["name"],
        type=type_,
        physical=field["name"],
        id=int(field["id"]),
        default=default,
        fields=tuple(map(_column, _fields_of(field["type"]))),
    )


def _named(field: Mapping[str, Any]) -> _Column:
    type_ = field["type"]
    fields = tuple(map(_named, _fields_of(type_)))
    name = type_ if isinstance(type_, str) else str(type_["type"])
    return _Column(field["name"], _SPARK_NAMES.get(name, name), fields)


def _fields_of(type_: Any) -> Iterable[Mapping[str, Any]]:
    return type_["fields"] if isinstance(type_, Mapping) and type_.get("type") == "struct" else ()


# -- bounds -----------------------------------------------------------------------------------------


def bounds_by_name(
    bounds: Sequence[Mapping[str, Any]] | None, schema: Mapping[str, Any]
) -> dict[str, object]:
    """Name -> value, of the columns whose values can be compared; `bounds` are {key, value} of a manifest."""
    if not bounds:
        return {}
    fields = {field["id"]: field for field in schema["fields"] if isinstance(field["type"], str)}
    by_name: dict[str, object] = {}
    for bound in bounds:
        field = fields.get(bound["key"])
        read = None if field is None else _READ.get(field["type"])
        if field is not None and read is not None:
            with suppress(struct.error, UnicodeDecodeError, OverflowError):  # then it rules out nothing
                by_name[field["name"]] = read(bound["value"])
    return by_name


def _integer(value: bytes) -> int:
    """A file may be from before the column became wider."""
    return int(struct.unpack("<i" if len(value) == 4 else "<q", value)[0])


def _real(value: bytes) -> float:
    return float(struct.unpack("<f" if len(value) == 4 else "<d", value)[0])


_READ: Mapping[str, Callable[[bytes], object]] = {
    "int": _integer,
    "long": _integer,
    "float": _real,
    "double": _real,
    "string": lambda value: value.decode(),
    "date": lambda value: _EPOCH + timedelta(days=_integer(value)),
}

"""The types of columns, as far as conditions need them: by Arrow's types, and by Spark's names of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

__all__ = ["LOOSE_TEXT", "TEXT", "ColumnType", "Kind", "NamedColumn", "of_arrow", "of_schema"]

Kind = Literal["number", "text", "boolean", "date", "timestamp", "bytes", "struct", "other"]


class NamedColumn(Protocol):
    """A column of a schema; a struct has `fields` of the same kind. `type` is Spark's simple type."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def fields(self) -> Iterable[Any]: ...


@dataclass(frozen=True, slots=True)
class ColumnType:
    """`sql` is DuckDB's type for it, `name` Spark's for people.

    `is_loose`: the column is a text of a file that has no types, so that it may hold what the text says.
    """

    kind: Kind
    name: str
    sql: str = "VARCHAR"
    fields: Mapping[str, ColumnType] = field(default_factory=dict)
    has_zone: bool = False
    is_loose: bool = False

    @property
    def scale(self) -> tuple[int, int] | None:
        """(digits, digits behind the point) of a decimal or an integer; None of floats."""
        if self.sql in _DIGITS:
            return _DIGITS[self.sql], 0
        match = _DECIMAL.fullmatch(self.sql)
        return None if match is None else (int(match[1]), int(match[2]))

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The least and the greatest integer; None of others."""
        return _BOUNDS.get(self.sql)


_SIGNED = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128}
_UNSIGNED = {"UTINYINT": 8, "USMALLINT": 16, "UINTEGER": 32, "UBIGINT": 64}
_BOUNDS = {
    **{name: (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) for name, bits in _SIGNED.items()},
    **{name: (0, (1 << bits) - 1) for name, bits in _UNSIGNED.items()},
}
_DIGITS = {name: len(str(high)) for name, (_, high) in _BOUNDS.items()}
_DECIMAL = re.compile(r"DECIMAL\(([0-9]+),([0-9]+)\)")

TEXT = ColumnType("text", "string")
LOOSE_TEXT = replace(TEXT, is_loose=True)
_BYTES = ColumnType("bytes", "binary", "BLOB")

_SPARK = {
    "tinyint": ColumnType("number", "tinyint", "TINYINT"),
    "smallint": ColumnType("number", "smallint", "SMALLINT"),
    "int": ColumnType("number", "int", "INTEGER"),
    "bigint": ColumnType("number", "bigint", "BIGINT"),
    "float": ColumnType("number", "float", "FLOAT"),
    "double": ColumnType("number", "double", "DOUBLE"),
    "boolean": ColumnType("boolean", "boolean", "BOOLEAN"),
    "string": TEXT,
    "binary": _BYTES,
    "date": ColumnType("date", "date", "DATE"),
    "timestamp": ColumnType("timestamp", "timestamp", "TIMESTAMP WITH TIME ZONE", has_zone=True),
    "timestamp_ltz": ColumnType("timestamp", "timestamp", "TIMESTAMP WITH TIME ZONE", has_zone=True),
    "timestamp_ntz": ColumnType("timestamp", "timestamp_ntz", "TIMESTAMP"),
}
_ALIASES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_SPARK_DECIMAL = re.compile(r"decimal\(([0-9]{1,2}),([0-9]{1,2})\)")
_SPARK_TEXT = re.compile(r"(?:var)?char\([0-9]+\)|string(?: collate \S+)?")


def of_schema(columns: Iterable[NamedColumn]) -> dict[str, ColumnType]:
    """Name -> type of the columns of a source or sink, as the agent has sent them."""
    return {column.name: _of_column(column) for column in columns}


def _of_column(column: NamedColumn) -> ColumnType:
    name = column.type.strip().lower()
    simple = _SPARK.get(_ALIASES.get(name, name))
    if simple is not None:
        return simple
    match = _SPARK_DECIMAL.fullmatch(name.replace(" ", ""))
    if match is not None and 0 < int(match[1]) <= 38 and int(match[2]) <= int(match[1]):
        return _decimal(int(match[1]), int(match[2]))
    if _SPARK_TEXT.fullmatch(name):
        return replace(TEXT, name=name)
    if name.startswith("struct"):
        return ColumnType("struct", "struct", fields=of_schema(column.fields or ()))
    return ColumnType("other", column.type)


def _decimal(digits: int, scale: int) -> ColumnType:
    return ColumnType("number", f"decimal({digits},{scale})", f"DECIMAL({digits},{scale})")


def of_arrow(type: Any) -> ColumnType:
    """Of a pyarrow.DataType."""
    import pyarrow as pa

    name = _ARROW_NAMES.get(str(type))
    if name is not None:
        return _SPARK[name]
    if str(type) in _ARROW_UNSIGNED:
        return ColumnType("number", str(type), _ARROW_UNSIGNED[str(type)])
    if pa.types.is_dictionary(type):
        return of_arrow(type.value_type)
    if pa.types.is_decimal128(type) and 0 <= type.scale <= type.precision:
        return _decimal(type.precision, type.scale)
    if pa.types.is_timestamp(type):
        return _SPARK["timestamp_ntz" if type.tz is None else "timestamp"]
    if pa.types.is_struct(type):
        fields = {inner.name: of_arrow(inner.type) for inner in type}
        return ColumnType("struct", "struct", fields=fields)
    if pa.types.is_fixed_size_binary(type):
        return _BYTES
    return ColumnType("other", str(type))


_ARROW_NAMES = {
    **{"int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint"},
    **{"halffloat": "float", "float": "float", "double": "double", "bool": "boolean"},
    **{"string": "string", "large_string": "string", "string_view": "string"},
    **{"binary": "binary", "large_binary": "binary", "date32[day]": "date", "date64[ms]": "date"},
}
_ARROW_UNSIGNED = {"uint8": "UTINYINT", "uint16": "USMALLINT", "uint32": "UINTEGER", "uint64": "UBIGINT"}

"""Values of Avro by their schema, as values of Python. Pure.

A value of a logical type is one of its own: a date, a time, a decimal.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

__all__ = ["AvroReader", "Decoder", "reader_of", "type_names"]

Schema = Any
_MOST_DEPTH = 100
_EPOCH = datetime(1970, 1, 1)
_SPARK_NAMES = {
    **{"null": "void", "boolean": "boolean", "int": "int", "long": "bigint", "float": "float"},
    **{"double": "double", "bytes": "binary", "string": "string", "enum": "string", "fixed": "binary"},
}
_MICROSECONDS = {
    "timestamp-millis": 1_000,
    "timestamp-micros": 1,
    "local-timestamp-millis": 1_000,
    "local-timestamp-micros": 1,
}


class Decoder:
    """The bytes of a block, read from the first to the last. Raises EOFError, ValueError."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def raw(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise EOFError("a block ends too early")
        piece = self._data[self._at : end]
        self._at = end
        return piece

    def number(self) -> int:
        data, at, bits, shift = self._data, self._at, 0, 0
        while True:
            if at >= len(data) or shift > 63:
                raise EOFError("a number ends too late")
            byte = data[at]
            at += 1
            bits |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        self._at = at
        return bits >> 1 ^ -(bits & 1)

    def blocks(self) -> Any:
        """The number of items in each part of an array or a map."""
        while count := self.number():
            if count < 0:
                count = -count
                self.number()  # the size in bytes
            if count > len(self._data):
                raise ValueError(f"{count} items in a block")
            yield count


@dataclass(frozen=True, slots=True)
class AvroReader:
    """Reads values of `schema`."""

    schema: Schema
    read: Callable[[Decoder], Any]


def reader_of(schema: Schema) -> AvroReader:
    """Raises ValueError, KeyError, TypeError of what is no schema."""
    return AvroReader(schema, _reader(schema, {}, "", 0))


def type_names(schema: Mapping[str, Any]) -> dict[str, str]:
    """The types of the columns of a record, by Spark's names; of nested ones Avro's."""
    return {str(field["name"]): _type_name(field["type"]) for field in schema["fields"]}


def _type_name(schema: Schema) -> str:
    if isinstance(schema, list):
        others = [part for part in schema if part != "null"]
        return _type_name(others[0]) if len(others) == 1 else "union"
    if isinstance(schema, str):
        return _SPARK_NAMES.get(schema, schema)
    logical = schema.get("logicalType", "")
    if logical == "decimal":
        return f"decimal({schema.get('precision')},{schema.get('scale', 0)})"
    if logical == "date":
        return "date"
    if logical in _MICROSECONDS:
        return "timestamp"
    return _type_name(schema["type"]) if isinstance(schema["type"], str) else str(schema["type"])


def _reader(schema: Schema, named: dict[str, Any], space: str, depth: int) -> Callable[[Decoder], Any]:
    if depth > _MOST_DEPTH:
        raise ValueError("a schema that is nested too deep")
    if isinstance(schema, list):
        branches = [_reader(part, named, space, depth + 1) for part in schema]
        return lambda decoder: _branch(branches, decoder.number())(decoder)
    if isinstance(schema, str):
        if schema in _PRIMITIVE:
            return _PRIMITIVE[schema]
        name = _full_name(schema, space)
        if name not in named:
            raise ValueError(f"its schema names {schema[:60]!r}, which it does not have")
        return lambda decoder: named[name](decoder)  # which may hold itself
    kind = schema["type"]
    if isinstance(kind, list | dict):
        return _reader(kind, named, space, depth + 1)
    if kind in ("record", "error", "enum", "fixed"):
        name = _full_name(str(schema["name"]), str(schema.get("namespace", space)))
        read = _named_reader(schema, kind, named, name.rpartition(".")[0], depth)
        named[name] = read if "logicalType" not in schema else _logical(schema, read)
        return named[name]  # type: ignore[no-any-return]
    if kind == "array":
        item = _reader(schema["items"], named, space, depth + 1)
        return lambda decoder: [item(decoder) for count in decoder.blocks() for _ in range(count)]
    if kind == "map":
        value = _reader(schema["values"], named, space, depth + 1)
        return lambda decoder: {
            _string(decoder): value(decoder) for count in decoder.blocks() for _ in range(count)
        }
    return _logical(schema, _reader(kind, named, space, depth + 1))


def _named_reader(
    schema: Mapping[str, Any], kind: str, named: dict[str, Any], space: str, depth: int
) -> Callable[[Decoder], Any]:
    if kind == "enum":
        symbols = [str(symbol) for symbol in schema["symbols"]]
        return lambda decoder: _branch(symbols, decoder.number())
    if kind == "fixed":
        size = int(schema["size"])
        return lambda decoder: decoder.raw(size)
    fields: list[tuple[str, Callable[[Decoder], Any]]] = []

    def read(decoder: Decoder) -> dict[str, Any]:
        return {name: of(decoder) for name, of in fields}

    named[_full_name(str(schema["name"]), space)] = read
    fields += [
        (str(field["name"]), _reader(field["type"], named, space, depth + 1)) for field in schema["fields"]
    ]
    return read


def _full_name(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _branch(branches: list[Any], number: int) -> Any:
    if not 0 <= number < len(branches):
        raise ValueError(f"branch {number} of {len(branches)}")
    return branches[number]


def _logical(schema: Mapping[str, Any], read: Callable[[Decoder], Any]) -> Callable[[Decoder], Any]:
    logical = schema.get("logicalType", "")
    if logical == "decimal":
        scale = -int(schema.get("scale", 0))
        return lambda decoder: Decimal(f"{int.from_bytes(read(decoder), 'big', signed=True)}E{scale}")
    if logical == "date":
        return lambda decoder: _day(read(decoder))
    if logical in _MICROSECONDS:
        unit, zone = _MICROSECONDS[logical], None if logical.startswith("local") else timezone.utc
        return lambda decoder: _moment(read(decoder) * unit, zone)
    return read


def _day(days: int) -> Any:
    """Python has no dates beyond its years: then it is their number."""
    try:
        return date(1970, 1, 1) + timedelta(days=days)
    except OverflowError:
        return days


def _moment(microseconds: int, zone: timezone | None) -> Any:
    try:
        return (_EPOCH + timedelta(microseconds=microseconds)).replace(tzinfo=zone)
    except OverflowError:
        return microseconds


def _string(decoder: Decoder) -> str:
    return decoder.raw(decoder.number()).decode("utf-8", "replace")


_PRIMITIVE: dict[str, Callable[[Decoder], Any]] = {
    "null": lambda decoder: None,
    "boolean": lambda decoder: decoder.raw(1) != b"\0",
    "int": Decoder.number,
    "long": Decoder.number,
    "float": lambda decoder: struct.unpack("<f", decoder.raw(4))[0],
    "double": lambda decoder: struct.unpack("<d", decoder.raw(8))[0],
    "bytes": lambda decoder: decoder.raw(decoder.number()),
    "string": _string,
}

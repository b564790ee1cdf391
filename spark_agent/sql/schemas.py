"""The columns of a source or a sink, as its `node_registered` event says them. Pure.

Takes Spark's own JSON of a StructType. Types are Spark's simple types, `bigint` or `array<string>`; a struct
has its fields. Promises that what an event gets fits into it, and that a note says what was left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

__all__ = ["MOST_BYTES", "Schema", "read_schema", "simple_type"]

#: Of the columns in an event, as JSON: brokers refuse messages of 1 MiB, and an event says more than these.
MOST_BYTES = 600_000
#: Of Spark's JSON: more would cost the driver too much.
_MOST_CHARACTERS = 16_000_000
#: So deep structs have their fields as columns, further below they are texts: the depth of events is bounded.
_MOST_LEVELS = 10
#: What Spark's JSON calls a type -> its simple name, where that is another one.
_SIMPLE = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
#: What Spark marks the column with that says where a row of a file is.
_METADATA_COLUMN = "__file_source_metadata_col"

Column = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Schema:
    """Some columns as an event has them, and why others are missing. Not to be changed: nodes share it."""

    columns: Sequence[Column] = ()
    note: str = ""

    def event_fields(self) -> dict[str, Any]:
        """Nothing of what has no columns."""
        fields: dict[str, Any] = {"schema": list(self.columns)} if self.columns else {}
        return fields | {"schema_note": self.note} if self.note else fields


@lru_cache(maxsize=64)  # a job writes the same columns again and again
def read_schema(text: str, most_bytes: int = MOST_BYTES) -> Schema:
    """Of the JSON of a StructType. Raises ValueError, KeyError or TypeError where it is none."""
    if len(text) > _MOST_CHARACTERS:
        return Schema(note=f"left out: Spark describes the columns in {len(text):,} characters")
    fields = json.loads(text)["fields"]
    columns = [_column(one, 1) for one in fields if not _is_metadata(one)]
    fitting = _fitting(columns, most_bytes)
    if fitting == len(columns):
        return Schema(columns)
    note = f"only the first {fitting:,} of {len(columns):,} columns: the others do not fit into an event"
    return Schema(columns[:fitting], note)


def _is_metadata(column: Mapping[str, Any]) -> bool:
    return _METADATA_COLUMN in (column.get("metadata") or {})


def _fitting(columns: Sequence[Column], most_bytes: int) -> int:
    """How many of them, from the first, have no more bytes than that."""
    if _bytes_of(columns) <= most_bytes:
        return len(columns)
    left, fitting = most_bytes, 0
    for column in columns:
        left -= _bytes_of(column) + 1
        if left < 0:
            break
        fitting += 1
    return fitting


def _bytes_of(value: object) -> int:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return len(text.encode("utf-8", "surrogatepass"))


def _column(said: Mapping[str, Any], level: int) -> Column:
    data_type, nullable = _stored(said["type"]), bool(said["nullable"])
    if level <= _MOST_LEVELS and isinstance(data_type, dict) and data_type["type"] == "struct":
        fields = [_column(one, level + 1) for one in data_type["fields"]]
        return {"name": said["name"], "type": "struct", "nullable": nullable, "fields": fields}
    return {"name": said["name"], "type": simple_type(data_type), "nullable": nullable}


def _stored(data_type: Any) -> Any:
    """Of a type that a user defined the one that it is stored as."""
    while isinstance(data_type, dict) and data_type["type"] == "udt":
        data_type = data_type["sqlType"]
    return data_type


def simple_type(data_type: Any) -> str:
    """Spark's simple name of a type, in full, of its JSON."""
    data_type = _stored(data_type)
    if isinstance(data_type, str):
        return _SIMPLE.get(data_type, data_type)
    kind = data_type["type"]
    if kind == "array":
        return f"array<{simple_type(data_type['elementType'])}>"
    if kind == "map":
        return f"map<{simple_type(data_type['keyType'])},{simple_type(data_type['valueType'])}>"
    if kind == "struct":
        inner = ",".join(f"{one['name']}:{simple_type(one['type'])}" for one in data_type["fields"])
        return f"struct<{inner}>"
    raise ValueError(f"a type of the kind {kind!r} is not known")

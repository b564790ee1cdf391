"""The types of columns of Parquet and ORC files, by Spark's simple names. Pure."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["spark_type"]

_NAMES = {
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
    pa.null(): "void",
}


def spark_type(type_: pa.DataType) -> str:
    """Arrow's name where Spark has none."""
    if type_ in _NAMES:
        return _NAMES[type_]
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if pa.types.is_timestamp(type_):
        return "timestamp"
    if pa.types.is_map(type_):
        return f"map<{spark_type(type_.key_type)},{spark_type(type_.item_type)}>"
    if pa.types.is_struct(type_):
        return f"struct<{','.join(f'{part.name}:{spark_type(part.type)}' for part in type_)}>"
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return f"array<{spark_type(type_.value_type)}>"
    return str(type_)

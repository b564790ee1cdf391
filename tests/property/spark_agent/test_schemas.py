"""Columns as events have them, beside PySpark's own names of types."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as t

from spark_agent.contract import MAX_EVENT_DEPTH
from spark_agent.contract.event_fields import COLUMN
from spark_agent.contract.field_types import ListOf
from spark_agent.sql.schemas import read_schema

_ATOMS = (
    t.ByteType(),
    t.ShortType(),
    t.IntegerType(),
    t.LongType(),
    t.FloatType(),
    t.DoubleType(),
    t.StringType(),
    t.BinaryType(),
    t.BooleanType(),
    t.DateType(),
    t.TimestampType(),
    t.TimestampNTZType(),
    t.DayTimeIntervalType(),
    t.YearMonthIntervalType(),
    t.NullType(),
)
_names = st.text('abc .é"\\:<', min_size=1, max_size=6)


def _structs(types: st.SearchStrategy[t.DataType]) -> st.SearchStrategy[t.StructType]:
    fields = st.builds(t.StructField, _names, types, st.booleans())
    return st.lists(fields, max_size=4).map(t.StructType)


_types = st.recursive(
    st.sampled_from(_ATOMS) | st.builds(t.DecimalType, st.integers(10, 38), st.integers(0, 9)),
    lambda inner: (
        st.builds(t.ArrayType, inner, st.booleans())
        | st.builds(t.MapType, inner, inner, st.booleans())
        | _structs(inner)
    ),
    max_leaves=12,
)


def _simple(column: dict[str, Any]) -> str:
    """Spark's simple name of a column's type, put together again of its fields."""
    if "fields" not in column:
        return str(column["type"])
    assert column["type"] == "struct"
    fields = ",".join(f"{field['name']}:{_simple(field)}" for field in column["fields"])
    return f"struct<{fields}>"


def _depth(value: object) -> int:
    if not isinstance(value, (dict, list)):
        return 0
    return 1 + max(map(_depth, value.values() if isinstance(value, dict) else value), default=0)


@given(struct=_structs(_types))
def test_types_are_sparks_simple_types(struct: t.StructType) -> None:
    schema = read_schema(struct.json())
    assert [column["name"] for column in schema.columns] == struct.names
    assert [_simple(dict(column)) for column in schema.columns] == [
        field.dataType.simpleString() for field in struct.fields
    ]
    assert [column["nullable"] for column in schema.columns] == [field.nullable for field in struct.fields]
    assert schema.note == ""
    ListOf(COLUMN).check(schema.event_fields().get("schema", []))


@given(struct=_structs(_types), most_bytes=st.integers(0, 300))
def test_what_fits_is_the_first_columns_and_a_note_says_so(struct: t.StructType, most_bytes: int) -> None:
    whole: Sequence[Any] = read_schema(struct.json()).columns
    cut = read_schema(struct.json(), most_bytes)
    assert list(cut.columns) == list(whole[: len(cut.columns)])
    assert bool(cut.note) == (len(cut.columns) < len(whole))
    text = json.dumps(list(cut.columns), separators=(",", ":"), ensure_ascii=False)
    assert not cut.columns or len(text.encode()) <= max(most_bytes, 2)


@given(levels=st.integers(1, 60), in_array=st.booleans())
def test_no_schema_is_deeper_than_an_event_may_be(levels: int, in_array: bool) -> None:
    data_type: t.DataType = t.LongType()
    for _ in range(levels):
        data_type = t.StructType([t.StructField("a", t.ArrayType(data_type) if in_array else data_type)])
    schema = read_schema(t.StructType([t.StructField("deep", data_type)]).json())
    assert 1 + _depth(schema.event_fields()["schema"]) <= MAX_EVENT_DEPTH

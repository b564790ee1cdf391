from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lineage_service.errors import InvalidQueryError
from lineage_service.queries import column_names
from lineage_service.tracing.files.json_values import MOST_COLUMNS, bounded, exact_json, read_json
from lineage_service.tracing.files.partition_folders import folder_above, partition_values, short_place
from lineage_service.tracing.files.row_columns import typed, with_partitions
from lineage_service.tracing.files.spark_type_names import spark_type

MOST_WHOLE = (1 << 53) - 1


@pytest.mark.parametrize(
    ("value", "as_json"),
    [
        (MOST_WHOLE, MOST_WHOLE),
        (MOST_WHOLE + 1, str(MOST_WHOLE + 1)),
        (-(1 << 63), str(-(1 << 63))),
        (0.1, 0.1),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (Decimal("57.810"), "57.810"),
        (True, True),
        (None, None),
        (b"\x00\xff", "00ff"),
        (date(2013, 2, 12), "2013-02-12"),
        (datetime(2013, 2, 12, 8, 0, 0, 5), "2013-02-12T08:00:00.000005"),
        (timedelta(seconds=1), "0:00:01"),
        ({"a": [1 << 60, {"b": Decimal(1)}]}, {"a": [str(1 << 60), {"b": "1"}]}),
        ([("k", 1)], [["k", 1]]),
    ],
)
def test_values_are_json_that_no_reader_rounds(value: Any, as_json: Any) -> None:
    assert exact_json(value) == as_json
    assert type(exact_json(value)) is type(as_json)


def test_what_is_nested_very_deep_is_shown_as_its_text() -> None:
    value: Any = 1
    for _ in range(30):
        value = [value]
    shown = exact_json(value)
    for _ in range(20):
        (shown,) = shown
    assert shown == "[" * 10 + "1" + "]" * 10


def test_json_rows_keep_every_digit() -> None:
    text = (
        '{"id": 9007199254740993, "x": 0.1000000000000000055511, "y": 1.50, "z": 1e999, "n": null, "t": "a"}'
    )
    assert read_json(text) == {
        **{"id": "9007199254740993", "x": "0.1000000000000000055511", "y": 1.5, "z": "1e999"},
        **{"n": None, "t": "a"},
    }
    assert read_json('{"half": "\\ud800", "\\udfff": 1}') == {"half": "?", "?": 1}
    assert read_json('[{"a": 1}]') is None
    assert read_json('{"a": 1') is None
    assert read_json("[" * 100_000) is None


def test_wide_rows_are_cut_and_say_so() -> None:
    assert bounded({"a": 1, "b": "x"}) == ({"a": 1, "b": "x"}, False)
    wide, is_cut = bounded({f"c{number}": number for number in range(MOST_COLUMNS + 1)})
    assert (len(wide), is_cut) == (MOST_COLUMNS, True)
    long, is_cut = bounded({"a": "x" * 99_999, "b": "yy", "c": [1] * 50, "d": 5})
    assert is_cut
    assert (long["b"], long["c"], long["d"]) == ("y…", "…", 5)


def test_partition_columns_are_read_from_the_folders() -> None:
    path = "/out/a=b c/monthly/origin=EWR/day=__HIVE_DEFAULT_PARTITION__/part%3A=x%2Fy/part-00000.parquet"
    assert partition_values(path) == {"origin": "EWR", "day": None, "part:": "x/y"}
    assert short_place(path) == "origin=EWR/day=__HIVE_DEFAULT_PARTITION__/part%3A=x%2Fy/part-00000.parquet"
    assert folder_above(path) == "/out/a=b c/monthly"
    assert partition_values("/out/monthly/part-0") == {}
    assert (short_place("part-0"), folder_above("part-0")) == ("part-0", "")
    columns = with_partitions("/t/year=2013/origin=EWR/f", {"n": 1, "origin": "own"}, {"year": "int"})
    assert columns == {"year": 2013, "origin": "own", "n": 1}
    assert list(columns) == ["year", "origin", "n"]


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("9007199254740993", "bigint", "9007199254740993"),
        ("1.10", "decimal(10,2)", "1.10"),
        ("TRUE", "boolean", True),
        ("2.50", "double", 2.5),
        ("NaN", "double", "NaN"),
        ("x", "bigint", "x"),
        ("maybe", "boolean", "maybe"),
        ("", "string", ""),
        ("1", "", "1"),
    ],
)
def test_a_text_is_a_value_of_its_type_if_it_can_be(text: str, type_: str, value: Any) -> None:
    assert typed(text, type_) == value


def test_types_have_the_names_of_spark() -> None:
    nested = pa.list_(pa.struct([("a", pa.int32()), ("b", pa.map_(pa.string(), pa.decimal128(5, 2)))]))
    assert spark_type(nested) == "array<struct<a:int,b:map<string,decimal(5,2)>>>"
    assert [spark_type(each) for each in (pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.time32("s"))] == [
        *("timestamp", "timestamp", "time32[s]")
    ]


def test_a_list_of_columns_is_read_as_csv() -> None:
    assert column_names('a,"b, c",*') == ("a", "b, c", "*")
    for text in ("", "a,,b", 'a,"b', "a\nb\n"):
        with pytest.raises(InvalidQueryError, match="is no list of columns"):
            column_names(text)

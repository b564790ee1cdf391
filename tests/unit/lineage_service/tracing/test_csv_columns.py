"""The names of the columns of CSV, and the fields that stand for them."""

from __future__ import annotations

import pytest

from lineage_service.tracing.files.csv_columns import CsvColumns
from lineage_service.tracing.files.csv_dialect import CsvDialect, dialect_of


def columns(
    *records: str, schema: tuple[str, ...] = (), has_header: bool = True, **options: str
) -> CsvColumns:
    return CsvColumns(records, schema, dialect_of(options or None), has_header=has_header)


def test_a_schema_names_the_fields_by_their_places_as_spark_does() -> None:
    assert columns("x,y", "1,2", schema=("a", "b")).of("1,2") == {"a": "1", "b": "2"}
    assert columns("1;2", schema=("a", "b"), has_header=False).of("1;2") == {"a": "1", "b": "2"}
    assert columns("a,b,c", schema=("a", "c")).names == ["a", "c"]
    assert columns("x,y,z", schema=("a", "b")).names == ["a", "b"]
    assert columns("a,b", schema=("a", "b", "c")).names == ["a", "b", "c"]
    assert columns("a,b,c", schema=("a", "b")).names == ["a", "b", "c"]


def test_without_a_schema_the_header_names_them_else_they_are_numbered() -> None:
    assert columns("a;b", "1;2").of("1;2") == {"a": "1", "b": "2"}
    assert columns("a,,c", "1,2,3").names == ["a", "_c1", "c"]
    assert columns("1\tx\t2,3", has_header=False).of("1\tx\t2,3") == {"_c0": "1", "_c1": "x", "_c2": "2,3"}
    assert columns(has_header=True).of("1") == {}


def test_fields_that_are_missing_are_null_and_those_behind_the_last_column_are_left_out() -> None:
    of_csv = columns("a,b", "1,2")
    assert of_csv.of("1") == {"a": "1", "b": None}
    assert of_csv.of("1,2,3") == {"a": "1", "b": "2"}
    assert columns("a,b,a", "1,2,3").of("1,2,3") == {"a": "1", "b": "2"}


def test_the_delimiter_of_the_job_goes_before_what_fits() -> None:
    assert columns("a,b^c", sep="^").of('1^"x^y"') == {"a,b": "1", "c": "x^y"}
    assert columns("1,2^3", schema=("a",), has_header=False, sep="^").of("1,2^3") == {"a": "1,2"}
    assert columns("1,2", has_header=False, header="false").of("1,2;3") == {"_c0": "1", "_c1": "2;3"}


@pytest.mark.parametrize(
    ("option", "delimiter"), [("\\t", "\t"), (";", ";"), ("||", "||"), ("\\\\", "\\"), ("a\\tb", "a\tb")]
)
def test_a_delimiter_is_written_as_spark_reads_it(option: str, delimiter: str) -> None:
    assert dialect_of({"sep": option}).delimiter == delimiter
    assert dialect_of({"delimiter": option}).delimiter == delimiter


def test_without_options_nothing_but_the_delimiter_is_open() -> None:
    assert dialect_of(None) == CsvDialect(delimiter=None)
    assert dialect_of({}) == CsvDialect(delimiter=",")
    assert dialect_of({"quote": "", "escape": "\0"}) == CsvDialect(
        ",", quote="", escape="", escape_of_escape=""
    )

"""Lines of CSV as fields, and what delimits them."""

from __future__ import annotations

import pytest

from lineage_service.tracing.files.csv_lines import column_names, delimiter_of, fields_of


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("a,b,c", ["a", "b", "c"]),
        ("a,,", ["a", None, None]),
        (",", [None, None]),
        ('a,"",c', ["a", "", "c"]),
        ('"a,b",c', ["a,b", "c"]),
        ('"a ""quoted"" word",c', ['a "quoted" word', "c"]),
        ('"a \\"quoted\\" word",c', ['a "quoted" word', "c"]),
        ('"a\\\\",c', ["a\\", "c"]),
        ('"never ends,c', ["never ends,c"]),
        ('a "b",c', ['a "b"', "c"]),
        ('"a",', ["a", None]),
        ('"a"', ["a"]),
    ],
)
def test_a_line_has_these_fields(line: str, fields: list[str | None]) -> None:
    assert fields_of(line, ",") == fields


@pytest.mark.parametrize(
    ("lines", "columns", "delimiter"),
    [
        (["a,b", "c,d"], None, ","),
        (["a;b,c", "d;e,f,g"], None, ";"),
        (["a\tb", "c\td"], None, "\t"),
        (["a|b|c"], 3, "|"),
        (["a;b,c"], 2, ","),
        (['1,"||||",x'], None, ","),
        (["a", "b"], None, ","),
        (["a;b"], 1, ","),
        ([], None, ","),
    ],
)
def test_the_delimiter_is_the_one_that_fits(lines: list[str], columns: int | None, delimiter: str) -> None:
    assert delimiter_of(lines, columns) == delimiter


def test_columns_have_the_names_of_the_header_or_the_schema_or_those_of_spark() -> None:
    assert column_names(["a", None], ["x", "y"], 2) == ["a", "_c1"]
    assert column_names(None, ["x", "y"], 2) == ["x", "y"]
    assert column_names(None, ["x"], 2) == ["_c0", "_c1"]

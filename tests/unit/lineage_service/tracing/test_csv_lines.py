"""Lines of CSV as fields, and what delimits them."""

from __future__ import annotations

import pytest

from lineage_service.tracing.files.csv_dialect import CsvDialect
from lineage_service.tracing.files.csv_lines import delimiter_of, fields_of, record_ends


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("a,b,c", ["a", "b", "c"]),
        ("a,,", ["a", None, None]),
        (",", [None, None]),
        ('a,"",c', ["a", None, "c"]),
        ('"a,b",c', ["a,b", "c"]),
        ('"a ""quoted"" word",c', ['"a ""quoted"" word"', "c"]),
        ('"a \\"quoted\\" word",c', ['a "quoted" word', "c"]),
        ('"a\\\\",c', ["a\\", "c"]),
        ('"never ends,c', ["never ends,c"]),
        ('a "b",c', ['a "b"', "c"]),
        ('"a",', ["a", None]),
        ('"a"', ["a"]),
    ],
)
def test_a_line_has_these_fields(line: str, fields: list[str | None]) -> None:
    assert fields_of(line, CsvDialect(delimiter=",")) == fields


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


def test_a_long_text_whose_quotes_never_end_is_read_once() -> None:
    text = '"' + "a" * 5_000_000
    assert list(record_ends(text, CsvDialect(delimiter=","))) == [(0, len(text))]

from __future__ import annotations

import pytest

from lineage_service.errors import InvalidQueryError
from lineage_service.replays.requested_rows import named_rows, replacement


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("sales.csv:4", [("sales.csv", 3)]),
        ("sales.csv:4,sales.csv:7-9", [("sales.csv", row) for row in (3, 6, 7, 8)]),
        ("sales.csv:4,7-8", [("sales.csv", 3), ("sales.csv", 6), ("sales.csv", 7)]),
        ("a:1,b:2,3", [("a", 0), ("b", 1), ("b", 2)]),
        ("day=1,2/part-0:5", [("day=1,2/part-0", 4)]),
        ("s3a://bucket/a:5", [("s3a://bucket/a", 4)]),
        ("a:1,a:1,a:1-2", [("a", 0), ("a", 1)]),
    ],
)
def test_rows_are_named_by_file_and_line(text: str, rows: list[tuple[str, int]]) -> None:
    assert named_rows(text) == rows


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("sales.csv", "names no rows"),
        ("", "names no rows"),
        ("4", "names no rows"),
        ("sales.csv:0", "lines count from 1"),
        ("sales.csv:9-7", "the last line is before the first one"),
        ("sales.csv:1-999999999", "more than 100,000 rows"),
        ("sales.csv:4,x", "names no rows"),
    ],
)
def test_what_names_no_rows_is_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidQueryError, match=why):
        named_rows(text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("sales.csv:4=Graz,19.90", ("sales.csv", 3, "Graz,19.90")),
        ("month=3/part-0:1=", ("month=3/part-0", 0, "")),
        ("a:1=b:2=c", ("a", 0, "b:2=c")),
    ],
)
def test_a_replacement_is_a_row_and_its_new_text(text: str, parts: tuple[str, int, str]) -> None:
    assert replacement(text) == parts


@pytest.mark.parametrize(
    ("text", "why"),
    [("a:1", "replaces no row"), ("a:0=x", "count from 1"), ("a:1=x\ny", "by several"), ("=x", "no row")],
)
def test_what_replaces_no_row_is_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidQueryError, match=why):
        replacement(text)

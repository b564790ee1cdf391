"""What is wrong with a condition is said in one sentence, and the place is shown."""

from __future__ import annotations

import pytest

from lineage_service.conditions.column_types import LOOSE_TEXT, TEXT, ColumnType
from lineage_service.conditions.columns import columnar, delimited
from lineage_service.conditions.errors import ConditionError
from lineage_service.conditions.filters import Where

TYPED = columnar(
    {
        "airport": TEXT,
        "delay": ColumnType("number", "double", "DOUBLE"),
        "flights": ColumnType("number", "bigint", "BIGINT"),
        "day": ColumnType("date", "date", "DATE"),
        "at": ColumnType("timestamp", "timestamp", "TIMESTAMP WITH TIME ZONE", has_zone=True),
        "raw": ColumnType("bytes", "binary", "BLOB"),
        "wind": ColumnType("struct", "struct", fields={"speed": ColumnType("number", "int", "INTEGER")}),
    }
)


@pytest.mark.parametrize(
    ("condition", "message", "place"),
    [
        ("airpot = 'EWR'", "there is no column airpot: did you mean airport?", 0),
        ("delay > 1 and zebra = 2", "there is no column zebra; there are airport, delay", 14),
        ("wind.sped > 3", "there is no column sped in wind: did you mean speed?", 0),
        ("airport.x = 1", "there is no x in airport: it has no fields", 0),
        ("airport = 5", "airport is a text, and does not compare with a number: write '5'", 10),
        (
            "flights = '5'",
            "flights is a number (bigint), and does not compare with a text: write the number without",
            10,
        ),
        ("day > 'soon'", "day is a date, and 'soon' is none: write '2013-02-28'", 6),
        ("day = 5", "day is a date, and does not compare with a number", 6),
        ("raw = 'x'", "raw is bytes, and does not compare with a text", 6),
        ("wind = 'x'", "wind is a struct, and does not compare with a text", 7),
        ("delay like 'x%'", "delay is no text, and like compares texts", 11),
        ("airport = delay", "airport is a text, and the other is a number (double)", 8),
        ('airport = "EWR"', "there is no column EWR", 10),
        ("airport =", "a column or a value is missing: the condition ends here", 9),
        ("", "a column or a value is missing: the condition ends here", 0),
        ("airport = null", "nothing compares with null: write is null, or is not null", 10),
        ("upper(airport) = 'X'", "functions cannot be used in a condition", 0),
        ("airport = 'EWR", "the text that begins here has no end: a quote ' is missing", 10),
        ("delay > 1; drop table x", "; has no meaning in a condition", 9),
        ("day = date '2013-02-30'", "this is no date: write '2013-02-28'", 11),
    ],
)
def test_an_error_says_what_is_wrong_and_where(condition: str, message: str, place: int) -> None:
    with pytest.raises(ConditionError) as caught:
        Where(condition).on(TYPED)
    said, shown, caret = str(caught.value).split("\n")
    assert message in said
    assert shown == f"    {condition}"
    assert caret == " " * (4 + place) + "^"


def test_of_a_long_condition_the_place_alone_is_shown() -> None:
    condition = f"{'delay > 1 and ' * 50}airpot = 'x'{' or delay > 2' * 50}"
    with pytest.raises(ConditionError) as caught:
        Where(condition).on(TYPED)
    _, shown, caret = str(caught.value).split("\n")
    assert len(shown) < 100
    assert shown[caret.index("^") :].startswith("airpot")


def test_a_wide_character_moves_the_caret_by_two() -> None:
    with pytest.raises(ConditionError) as caught:
        Where("名名 = x.")
    assert str(caught.value).endswith("\n" + " " * (4 + 9) + "^")


def test_texts_of_files_without_types_compare_with_numbers() -> None:
    columns = delimited({"amount": LOOSE_TEXT, "other": LOOSE_TEXT})
    assert Where("amount > 5 and other = 'x'").on(columns).parameters == (5, 5.0, "x")
    with pytest.raises(ConditionError, match="only = and != compare them"):
        Where("amount < other").on(columns)


def test_a_column_is_named_in_any_case_where_only_one_fits() -> None:
    assert Where("AIRPORT = 'EWR'").on(TYPED).sql == Where("airport = 'EWR'").on(TYPED).sql
    twofold = columnar({"a": TEXT, "A": TEXT})
    assert '("A")' in Where("A = 'x'").on(twofold).sql
    several = columnar({"ab": TEXT, "AB": TEXT})
    with pytest.raises(ConditionError, match="several columns are called Ab: write ab or AB"):
        Where("Ab = 'x'").on(several)

"""What can be said of rows."""

from __future__ import annotations

from typing import Any

import pytest

from lineage_service.tracing.debugging.properties import ComparedRow, properties_of

pytestmark = pytest.mark.unit


def said(bad: list[Any], good: list[Any]) -> dict[str, list[bool]]:
    rows = [
        ComparedRow(
            at < len(bad),
            columns=row if isinstance(row, dict) else None,
            text=row if isinstance(row, str) else None,
        )
        for at, row in enumerate((*bad, *good))
    ]
    return {one.words: one.rows.tolist() for one in properties_of(rows)}


def test_a_column_has_values_ranges_and_lengths() -> None:
    properties = said(
        [{"city": "Graz", "sum": 90}], [{"city": "Wien", "sum": 10}, {"city": "Linz1", "sum": 20}]
    )
    assert properties["city = Graz"] == [True, False, False]
    assert properties["sum = 90"] == [True, False, False]
    assert properties["sum >= 90"] == [True, False, False]
    assert properties["length of city <= 4"] == [True, True, False]
    assert "city = Wien" not in properties  # of no bad row


@pytest.mark.parametrize("nothing", [None, ""])
def test_null_and_empty_are_empty(nothing: str | None) -> None:
    properties = said([{"genre": nothing}], [{"genre": "drama"}])
    assert properties == {"genre is empty": [True, False]}


@pytest.mark.parametrize("odd", ["n/a", float("nan"), "12 EUR", True])
def test_what_is_no_number_among_numbers_is_noticed(odd: object) -> None:
    properties = said([{"sum": odd}], [{"sum": 1.5}, {"sum": "2"}, {"sum": 3}])
    assert properties["sum is no number"] == [True, False, False, False]


def test_texts_are_split_at_their_delimiter() -> None:
    properties = said(["Graz;7"], ["Wien;8", "Linz;9"])
    assert properties["column 1 = Graz"] == [True, False, False]
    assert properties["column 2 <= 7"] == [True, False, False]


def test_texts_without_a_delimiter_are_one_column() -> None:
    assert said(["crash"], ["fine"])["the row = crash"] == [True, False]


def test_rows_of_other_columns_lack_them() -> None:
    properties = said([{"a": 1}], [{"b": 1}, "text"])
    assert properties == {"a = 1": [True, False, False]}


def test_rows_of_several_sources_have_columns_of_their_own() -> None:
    rows = [
        ComparedRow(True, "orders.csv", text="7,Graz"),
        ComparedRow(True, "customers", columns={"id": 1}),
        ComparedRow(False, "orders.csv", text="8,Wien"),
    ]
    properties = {one.words: one.rows.tolist() for one in properties_of(rows)}
    assert properties["column 2 of orders.csv = Graz"] == [True, False, False]
    assert properties["id of customers = 1"] == [False, True, False]


def test_traits_of_bad_rows_are_properties() -> None:
    rows = [
        ComparedRow(True, traits=frozenset({("file", "file = a.csv")})),
        ComparedRow(False, traits=frozenset({("file", "file = b.csv")})),
    ]
    assert [(one.words, one.family, one.rows.tolist()) for one in properties_of(rows)] == [
        ("file = a.csv", "file", [True, False])
    ]

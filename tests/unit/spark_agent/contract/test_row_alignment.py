from __future__ import annotations

import pytest

from spark_agent.contract.row_alignment import are_close, common_key, corresponding_texts, form, numbers_in


@pytest.mark.parametrize(
    ("was", "now", "is_close"),
    [
        ("Graz,0.30000000000000004", "Graz,0.3", True),
        ("Graz,1e10", "Graz,10000000000.000001", True),
        ("Graz,0.3", "Graz,0.31", False),
        ("Graz,1000000000000", "Graz,1000000000001", False),  # whole numbers
        ("Graz,0.3", "Linz,0.3", False),
        ("('a', 1.5)", "('a', 1.5000000000000002)", True),
        ("v1.2.3", "v1.2.4", False),
        ("-0.5", "0.5", False),
        ("0.0", "-0.0", True),
        ("1.0", "1.0", True),
    ],
)
def test_only_numbers_with_fractions_may_be_apart(was: str, now: str, is_close: bool) -> None:
    assert are_close(was, now) is is_close


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Graz,2033.90", "Graz"),
        ("('a', 1)", "a"),
        ('{"city": "Graz"}', "city"),
        ("word\t5", "word"),
        ("one field", ""),
        ("", ""),
    ],
)
def test_the_first_field_is_the_key(text: str, key: str) -> None:
    assert common_key(text) == key


def test_rows_of_one_key_correspond() -> None:
    was, now = ["Graz,1", "Linz,2", "Wien,3"], ["Wien,4", "Graz,5", "Rom,6"]
    assert corresponding_texts(was, now) == [(0, 1, "Graz"), (2, 0, "Wien")]


def test_rows_of_a_key_that_several_have_do_not() -> None:
    assert corresponding_texts(["Graz,1", "Graz,2"], ["Graz,3"]) == []


def test_the_form_of_a_row_without_a_key_names_it() -> None:
    assert corresponding_texts(["12 rows"], ["13 rows"]) == [(0, 0, None)]


def test_numbers_alone_correspond_to_nothing() -> None:
    assert corresponding_texts(["12"], ["13"]) == []


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("H0000,9,22.61", ["9", "22.61"]),
        ("v1.2.3 a2 3b", []),
        ("a;-1e-3", ["-1e-3"]),
        ("(7, .5)", ["7", ".5"]),
    ],
)
def test_digits_within_words_are_no_numbers(text: str, numbers: list[str]) -> None:
    assert numbers_in(text) == numbers
    assert form(text).count("\0") == len(numbers)

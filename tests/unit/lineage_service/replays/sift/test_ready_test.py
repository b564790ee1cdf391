from __future__ import annotations

import pytest

from lineage_service.errors import InvalidQueryError
from lineage_service.replays.sift.ready_test import ready_test

MEANS = [f"H{school:04d},{9 + school % 4},{15.5 + school / 100}" for school in range(40)]


def test_a_number_far_from_the_median_is_what_is_wrong() -> None:
    test = ready_test("H0077,9,22.6", MEANS)
    assert test.description.startswith("field 3 is above ")
    assert test.description.endswith(": 5 deviations from the median 15.695")
    assert test.fails("H0077,9,1990.0")
    assert not test.fails("H0077,9,16.0")
    assert not test.fails("H0003,9,1990.0")  # another school
    assert not test.fails("H0077")


def test_a_field_without_a_number_is_what_is_wrong() -> None:
    test = ready_test("H0077,9,nan", MEANS)
    assert test.description == "field 3 has no number, as 40 of 40 other rows have"
    assert test.fails("H0077,9,")
    assert not test.fails("H0077,9,3")


def test_the_largest_and_the_smallest_are_told_from_the_others() -> None:
    test = ready_test("x 12", [f"x {number}" for number in range(11)])
    assert test.description == "field 2 is above 10, the largest of the other rows"
    assert (test.fails("x 11"), test.fails("x 10"), test.fails("y 11")) == (True, False, False)
    test = ready_test("x -1", [f"x {number}" for number in range(11)])
    assert test.description == "field 2 is below 0, the smallest of the other rows"


@pytest.mark.parametrize("others", [["x 1", "x 2", "x 3"], [], ["other form"]])
def test_a_row_that_looks_like_the_others_needs_a_test_of_its_own(others: list[str]) -> None:
    with pytest.raises(InvalidQueryError, match="by --fails"):
        ready_test("x 2", others)


@pytest.mark.parametrize("form", ["pen={}", "pen:{}", "(pen, {})", "pen\t{}"])
def test_a_number_behind_a_name_is_judged_however_it_is_written(form: str) -> None:
    others = [form.replace("pen", name).format(number) for name, number in (("ink", 4.5), ("cup", 5.0))]
    test = ready_test(form.format(122.5), others)
    assert (test.fails(form.format(99)), test.fails(form.format(5))) == (True, False)
    assert not test.fails(form.replace("pen", "cup").format(99))


def test_rows_of_json_are_judged_by_their_fields() -> None:
    others = [f'{{"shop":"S{number % 3}","sum":{100 + number},"note":null}}' for number in range(9)]
    test = ready_test('{"shop":"S1","sum":-7.5}', others)
    assert test.description.startswith("sum is below ")
    assert test.fails('{"sum": -8, "shop": "S1"}')
    assert not test.fails('{"shop":"S2","sum":-8}')
    assert not test.fails('{"shop":"S1","sum":101}')
    assert not test.fails("S1,-8")


def test_a_field_of_json_that_is_null_is_missing() -> None:
    others = [f'{{"shop":"S1","sum":{number}}}' for number in range(9)]
    test = ready_test('{"shop":"S1"}', others)
    assert test.description == "sum has no number, as 9 of 9 other rows have"
    assert test.fails('{"shop":"S1","sum":null}')
    assert test.fails('{"shop":"S1","sum":"NaN"}')
    assert not test.fails('{"shop":"S1","sum":3}')

"""The rows among which a sift looks, and which are tried first."""

from __future__ import annotations

from lineage_service.replays.sift.candidates import Candidates
from lineage_service.replays.sift.sift_search import order_of_tests

LINES = ["shop,amount", "Graz,1", "Graz,2", "Graz,4", "Graz,917", "Graz,3", "Graz,5"]
SOURCE = {
    "node": 0,
    "name": "textFile",
    "whole": False,
    "partitions": 1,
    "splits": [{"split": 0, "positions": [[0, len(LINES)]]}],
    "texts": {"0": LINES},
}


def test_what_the_program_took_is_tried_with_the_oddest_row() -> None:
    candidates = Candidates([SOURCE], taken=[(0, 0, 0)])
    assert order_of_tests(candidates)[:2] == [4, 0]
    assert sorted(order_of_tests(candidates)) == list(range(len(LINES)))


def test_a_row_that_nobody_took_stands_where_it_is_odd() -> None:
    assert order_of_tests(Candidates([SOURCE]))[0] in (0, 4)
    assert order_of_tests(Candidates([SOURCE], taken=[(0, 0, number) for number in range(len(LINES))]))


def test_rows_of_some_are_those_that_were_taken_too() -> None:
    candidates = Candidates([SOURCE], taken=[(0, 0, 0)])
    assert candidates.common([candidates]).taken == {(0, 0, 0)}
    assert candidates.whole_but({1}, "why").taken == {(0, 0, 0)}
    assert order_of_tests(Candidates([SOURCE], is_whole=True)) == ()

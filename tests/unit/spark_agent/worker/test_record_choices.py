from __future__ import annotations

import pytest

from spark_agent.worker.record_choices import OfKeys, OfTexts, OutputTexts


@pytest.mark.parametrize(
    ("record", "is_taken"),
    [
        (("a", 1), True),
        ((7, 1), True),
        ((7.0, 1), False),
        (("b", 1), False),
        ("a", False),
        ((), False),
        (["a", 1], False),
    ],
)
def test_a_pair_is_chosen_by_the_text_of_its_key(record: object, is_taken: bool) -> None:
    assert OfKeys(["a", "7"])(record) is is_taken


@pytest.mark.parametrize(
    ("record", "is_taken"),
    [("a", True), (b"a", True), ("b\na", True), (7, True), ("ab", False), (("a",), False)],
)
def test_a_record_is_chosen_by_the_rows_that_it_becomes(record: object, is_taken: bool) -> None:
    assert OfTexts(["a", "7"])(record) is is_taken


def test_records_are_looked_at_as_the_rows_that_they_become() -> None:
    (seen,) = OutputTexts(["a", "7", "d"], 2)(["a", b"a", 7, "b\nc\r\nd\re", ""])
    assert dict(seen.asked) == {"a": 2, "7": 1, "d": 1}
    assert seen.others == ["b", "c"]
    assert seen.rows == 8

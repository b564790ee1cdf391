from __future__ import annotations

from lineage_service.store.maintenance import Stored, expired

STORED = {name: Stored(name, bytes=size) for name, size in {"a": 10, "b": 20, "c": 30, "runs": 40}.items()}
ENDED = {"b": 100.0, "c": 200.0, "a": 300.0}


def test_without_a_limit_nothing_goes() -> None:
    assert expired(STORED, ENDED, now=10**9) == []


def test_what_ended_too_long_ago_goes_the_oldest_first() -> None:
    assert expired(STORED, ENDED, keep_s=150, now=351) == ["b", "c"]
    assert expired(STORED, ENDED, keep_s=150, now=350) == ["b"]


def test_too_many_bytes_let_the_oldest_go_until_the_rest_fits() -> None:
    assert expired(STORED, ENDED, keep_bytes=100, now=0) == []
    assert expired(STORED, ENDED, keep_bytes=99, now=0) == ["b"]
    assert expired(STORED, ENDED, keep_bytes=79, now=0) == ["b", "c"]


def test_what_has_not_ended_never_goes() -> None:
    assert expired(STORED, ENDED, keep_s=1, keep_bytes=0, now=10**9) == ["b", "c", "a"]


def test_what_age_takes_counts_for_the_bytes_too() -> None:
    assert expired(STORED, ENDED, keep_s=150, keep_bytes=80, now=350) == ["b"]


def test_an_application_whose_end_is_known_but_of_which_nothing_is_stored_is_passed_over() -> None:
    assert expired(STORED, {**ENDED, "gone": 1.0}, keep_s=1, now=102) == ["b"]


def test_tables_in_one_small_file_are_left_as_they_are() -> None:
    stored = Stored(
        "a", files={"flows": 9, "records": 2, "events": 1}, small={"flows": 2, "records": 1, "events": 1}
    )
    assert stored.unsorted == ("flows",)

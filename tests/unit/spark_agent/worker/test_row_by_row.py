"""Which functions of a partition are known to make each output of the row that they read last."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from spark_agent.worker.row_by_row import is_row_by_row


def behind_a_header(rows: Iterator[str]) -> Iterator[str]:
    next(rows, None)
    return map(str.upper, rows)


def some(rows: Iterator[str], many: int = 2) -> Iterator[str]:
    for row in rows:
        for _ in range(many):
            yield row
    print(many)


ROW_BY_ROW: dict[str, Callable[[Iterator[str]], Any]] = {
    "map": lambda rows: map(str.upper, rows),
    "map behind a header": behind_a_header,
    "map of a partial": lambda rows: map(functools.partial(max, "b"), rows),
    "filter": lambda rows: filter(None, rows),
    "generator": lambda rows: (row * 2 for row in rows if row > "a"),
    "generator with a default": some,
}


def pairs(rows: Iterator[str]) -> Iterator[str]:
    def with_the_next(row: str) -> str:
        return row + next(rows, "")

    return map(with_the_next, rows)


def joined(rows: Iterator[str], row: str) -> str:
    return row + next(rows, "")


def pairs_by_a_function(rows: Iterator[str]) -> Iterator[str]:
    def second() -> str:
        return next(rows, "")

    return (row + second() for row in rows)


def with_a_sum_outside(rows: Iterator[str]) -> Iterator[str]:
    seen = ""

    def generator() -> Iterator[str]:
        nonlocal seen
        for row in rows:
            seen += row
            yield seen

    return generator()


def with_a_global(rows: Iterator[str]) -> Iterator[str]:
    global _seen
    for row in rows:
        _seen += row
        yield _seen


_seen = ""


def with_the_one_before(rows: Iterator[str], before: str = "") -> Iterator[str]:
    while True:
        for row in rows:
            yield before + row
            break
        else:
            return
        before = row


def totals(rows: Iterator[str]) -> Iterator[str]:
    total = ""
    for row in rows:
        total += row
        yield total


OTHERWISE: dict[str, Callable[[Iterator[str]], Any]] = {
    "map whose function reads on": pairs,
    "map whose partial reads on": lambda rows: map(functools.partial(joined, rows), rows),
    "filter whose function reads on": lambda rows: filter(lambda row: next(rows, row), rows),
    "generator whose function reads on": pairs_by_a_function,
    "loop in a loop": with_the_one_before,
    "running total": totals,
    "map of two": lambda rows: map(joined, iter("abc"), rows),
    "list": list,
}


@pytest.mark.parametrize("name", ROW_BY_ROW)
def test_what_reads_row_by_row_is_known(name: str) -> None:
    rows = iter("abcd")
    assert is_row_by_row(ROW_BY_ROW[name](rows), rows)


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_makes_an_output_of_other_rows_too_is_not_taken_for_that(name: str) -> None:
    rows = iter("abcd")
    assert not is_row_by_row(OTHERWISE[name](rows), rows)

"""The time budget of questions: each has its own, whoever else is watched over."""

from __future__ import annotations

import time

import duckdb
import pytest

from lineage_service.errors import TimeBudgetError
from lineage_service.tracing.columns.time_budget import time_budget

_ENDLESS = "SELECT count(*) FROM range(10000000) a, range(10000000) b"
_LONG_S = 60.0


def test_a_question_that_came_later_is_interrupted_before_one_that_has_longer() -> None:
    with duckdb.connect(":memory:") as database:
        first, second = database.cursor(), database.cursor()
        with time_budget(first, _LONG_S) as check_first:
            began = time.monotonic()
            with pytest.raises(TimeBudgetError, match=r"its 0\.2 s"), time_budget(second, 0.2):
                second.execute(_ENDLESS)
            assert time.monotonic() - began < _LONG_S / 2
            check_first()
            assert first.execute("SELECT 1").fetchall() == [(1,)]


def test_what_is_done_between_queries_ends_when_it_asks() -> None:
    def ask_on() -> None:
        with time_budget(database, 0.01) as check:
            while True:
                check()

    with duckdb.connect(":memory:") as database, pytest.raises(TimeBudgetError):
        ask_on()


def test_a_question_that_has_ended_is_not_interrupted_any_more() -> None:
    with duckdb.connect(":memory:") as database:
        with time_budget(database, 0.1):
            pass
        with time_budget(database, _LONG_S):
            until = time.monotonic() + 0.3
            while time.monotonic() < until:
                assert database.execute("SELECT sum(range) FROM range(100000)").fetchall()


def test_a_cursor_that_was_closed_does_not_end_the_watch_over_others() -> None:
    with duckdb.connect(":memory:") as database:
        closed, other = database.cursor(), database.cursor()
        with time_budget(closed, 0.05):
            closed.close()
            with pytest.raises(TimeBudgetError), time_budget(other, 0.3):
                other.execute(_ENDLESS)

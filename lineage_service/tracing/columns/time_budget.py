"""The time that one query has: DuckDB is interrupted when it is spent, and all else checks now and then.

One thread watches over all queries: to start one for each, and wait until it runs, costs more than many a
result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from itertools import count
from threading import Condition, Thread
from time import monotonic
from typing import Protocol

import duckdb

from lineage_service.errors import TimeBudgetError
from lineage_service.store.errors import translated_read_errors

__all__ = ["TimeBudget", "time_budget"]


class _Interruptible(Protocol):
    """A connection or a cursor of DuckDB."""

    def interrupt(self) -> None: ...


class _Watch:
    """Calls each function when its time has come, unless it was taken back. Threads share it."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._ends: dict[int, tuple[float, Callable[[], None]]] = {}
        self._numbers = count()
        self._wakes_at: float | None = None  # None: when it is notified
        self._thread: Thread | None = None

    def begin(self, at: float, call: Callable[[], None]) -> int:
        with self._changed:
            number = next(self._numbers)
            self._ends[number] = at, call
            if self._thread is None:
                self._thread = Thread(target=self._run, name="time-budgets", daemon=True)
                self._thread.start()
            elif self._wakes_at is None or at < self._wakes_at:
                self._changed.notify()
            return number

    def end(self, number: int) -> None:
        """It is not called any more, and nothing here refers to it.

        DuckDB aborts where a thread drops a cursor while the interpreter ends.
        """
        with self._changed:
            self._ends.pop(number, None)

    def _run(self) -> None:
        with self._changed:
            while True:
                self._call_due()
                self._wakes_at = min((at for at, _ in self._ends.values()), default=None)
                self._changed.wait(None if self._wakes_at is None else self._wakes_at - monotonic())

    def _call_due(self) -> None:
        now = monotonic()
        for number in [number for number, (at, _) in self._ends.items() if at <= now]:
            with suppress(duckdb.Error):  # of a cursor that is closed: the others are watched on
                self._ends.pop(number)[1]()


_watch = _Watch()


class TimeBudget:
    """What one query has left of its time. Called, it raises TimeBudgetError once that is spent."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self._deadline = seconds, monotonic() + seconds
        self._spent = TimeBudgetError(
            f"the query took longer than its {seconds:g} s; ask for fewer steps with depth= or to="
        )

    def __call__(self) -> None:
        if monotonic() >= self._deadline:
            raise self._spent

    @property
    def left_s(self) -> float:
        return max(self._deadline - monotonic(), 0.0)

    @contextmanager
    def interrupting(self, cursor: _Interruptible) -> Iterator[None]:
        """Interrupt `cursor` when the time is spent; TimeBudgetError instead of DuckDB's own."""
        watched = _watch.begin(self._deadline, cursor.interrupt)
        try:
            yield
        except duckdb.InterruptException:
            raise self._spent from None
        finally:
            _watch.end(watched)


@contextmanager
def time_budget(cursor: _Interruptible | None, seconds: float) -> Iterator[TimeBudget]:
    """Interrupt `cursor`, if there is one, after `seconds`; TimeBudgetError instead of DuckDB's own.

    Files that maintenance took away meanwhile, and damaged ones, are a StoreUnavailableError.

    An interrupt between two queries is lost, and what is done there may take long too: what is yielded is to
    be called there, and raises the same.
    """
    budget = TimeBudget(seconds)
    with (
        translated_read_errors(),  # errors of the files of jobs stand with their rows
        nullcontext() if cursor is None else budget.interrupting(cursor),
    ):
        yield budget

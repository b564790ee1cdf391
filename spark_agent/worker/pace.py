"""Looks, some 60 times a second, which record the task of this worker is at, and books the time in between.

A thread of its own does it, so a record costs nothing. Time counts in which the task read nothing new: it
goes to the record that the task is at when it looks. So does the time in which one call kept Python's lock,
and this thread from looking. Time in which the task waited for a processor does not count, as far as the
system says it.

Looks are due at even times, however late each is. Where a task of many quick records has read fewer than
usual and is at one, it may be a slow one: then the next look is soon, before that record is over.

Promises that nothing of this changes or fails a task, and that a worker without a task is left alone. User
code does not see the thread: it is none of `threading`'s.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import sys
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

from spark_agent.worker.record_at_hand import AtHand, record_at_hand

if TYPE_CHECKING:
    from spark_agent.worker.task_run import TaskRun

__all__ = ["INTERVAL_S", "Look", "Looking", "Pace"]

#: A record of 50 ms is looked at twice, also where each look is some 15 ms late.
INTERVAL_S = 0.016
#: Until the next look where a record may be slow, and the least time between two looks.
_SOON_S, _LEAST_S = 0.004, 0.002
#: Looks are soon only at a task that reads so many records in an interval: others do not need them.
_MANY = 8
#: It reads fewer than usual if it reads less than this share of what it read lately.
_FEWER = 2 / 3
#: Intervals over which it is counted what is usual.
_LATELY = 8
#: A wait for Python's lock that is shorter may be by chance.
_LEAST_KEPT_S = 0.01


class Look(NamedTuple):
    """What a look sees, but for the record. Times are in seconds, of clocks that never go back."""

    at: float
    #: How much more time than it slept has gone by since the look before.
    late: float
    #: How often this thread has waited for something.
    waits: int = 0
    #: How often the system took the processor from a thread of this process.
    preempted: int = 0
    #: What the task's thread has used of the processor.
    used: float = 0.0


class Looking:
    """The looks at one task run, which is not held.

    `waited` says for how many seconds the task's thread has waited for a processor so far, None if unknown.
    It is asked only while the task may stand.
    """

    def __init__(
        self,
        switch_s: float,
        waited: Callable[[], float | None] = lambda: None,
        begun: Look | None = None,
    ) -> None:
        """`begun`: what a look would have seen when the run began, before it read anything."""
        self._switch_s = switch_s  # after so long, Python's lock is asked for again
        self._waited = waited
        self._waited_before: float | None = None
        self._last = begun
        self._inputs = 0
        self._at_hand: AtHand | None = None
        self._usual = _Usual()
        self._soon_s = _SOON_S

    def look(self, run: TaskRun, look: Look, find: Callable[[], AtHand | None]) -> float:
        """Seconds until the next look. `find` says which record the run is at. May raise."""
        last, self._last = self._last, look
        inputs, self._inputs = self._inputs, run.inputs.count
        before, self._at_hand = self._at_hand, None
        waited_before, self._waited_before = self._waited_before, None
        if last is None:
            return INTERVAL_S
        read, seconds = self._inputs - inputs, look.at - last.at
        has_few, is_quick = self._usual.has_few(read, seconds), self._usual.is_quick
        self._usual.add(read, seconds)
        kept = self._kept_lock(look, last)
        if read and not kept and not (has_few and is_quick):
            return self._in_time()
        self._at_hand = at_hand = find()
        if at_hand is None:
            return self._in_time()
        self._waited_before = waited = self._waited()
        is_same = not read and (at_hand == before or _is_by_input(run, at_hand.node))
        booked = seconds if is_same else kept
        if waited is not None and waited_before is not None:
            booked = min(booked, seconds - (waited - waited_before))
        elif look.preempted > last.preempted:  # perhaps the task's thread
            booked = min(booked, look.used - last.used)
        if booked > 0:
            run.slow.book(at_hand, booked)
        return self._soon(is_same=is_same) if is_quick else self._in_time()

    def _in_time(self) -> float:
        self._soon_s = _SOON_S
        return INTERVAL_S

    def _soon(self, *, is_same: bool) -> float:
        """A record that goes on and on is looked at less and less often."""
        soon = _SOON_S if not is_same else self._soon_s
        self._soon_s = min(2 * soon, INTERVAL_S)
        return soon

    def _kept_lock(self, look: Look, last: Look) -> float:
        """How long one call kept Python's lock from this thread."""
        asked = look.waits - last.waits - 2  # it slept, and got the lock
        kept = min(look.late, asked * self._switch_s) - self._switch_s
        return kept if kept >= _LEAST_KEPT_S else 0.0


class _Usual:
    """How many records a task has read in a second lately."""

    def __init__(self) -> None:
        self._in_a_second = 0.0

    @property
    def is_quick(self) -> bool:
        return self._in_a_second * INTERVAL_S >= _MANY

    def has_few(self, read: int, seconds: float) -> bool:
        return read < _FEWER * self._in_a_second * seconds

    def add(self, read: int, seconds: float) -> None:
        """It has read so many more."""
        if seconds > 0:
            share = min(seconds / (_LATELY * INTERVAL_S), 1.0)
            self._in_a_second += share * (read / seconds - self._in_a_second)


def _is_by_input(run: TaskRun, node: int) -> bool:
    return any(stage.node == node and stage.is_by_input for stage in run.stages)


class Pace:
    """The thread of one process. `attend` starts or wakes it."""

    def __init__(self, current_run: Callable[[], TaskRun | None]) -> None:
        self._current_run = current_run
        self._process = 0
        self._task_thread = self._native_id = 0
        self._begun = Look(0.0, 0.0)
        self._is_parked = False
        self._wakes: SimpleQueue[None] = SimpleQueue()

    def attend(self) -> None:
        """A task run has begun in this thread."""
        with contextlib.suppress(Exception):  # no thread is to be had
            self._task_thread, self._native_id = _thread.get_ident(), _thread.get_native_id()
            self._begun = _Clock(self._task_thread).look(0.0)
            if self._process != os.getpid():
                self._process, self._is_parked, self._wakes = os.getpid(), False, SimpleQueue()
                _thread.start_new_thread(self._watch, (self._wakes,))
            elif self._is_parked:
                self._wakes.put(None)

    def _watch(self, wakes: SimpleQueue[None]) -> None:
        with contextlib.suppress(Exception):  # an agent bug: it looks no more
            waits = 0
            while True:
                self._is_parked = True
                if self._number() is None:
                    wakes.get()
                self._is_parked = False
                waits = self._attend_run(waits)

    def _number(self) -> int | None:
        """That of the current run."""
        run = self._current_run()
        return None if run is None else run.number

    def _attend_run(self, waits: int) -> int:
        """Look at the current run until it ends. It is not held meanwhile: what it has is the task's.

        `waits`: how often this thread had waited before it began to wait for the run. Gives the same for the
        next run.
        """
        number, thread = self._number(), self._task_thread
        begun = self._begun._replace(waits=waits)
        looking = Looking(sys.getswitchinterval(), _wait_of(self._native_id), begun)
        clock, due, slept = _Clock(thread), begun.at, 0.0
        look = begun
        while number is not None and self._number() == number:
            wait = INTERVAL_S
            with contextlib.suppress(Exception):  # what it looks at goes on meanwhile
                look = clock.look(look.at + slept)
                wait = self._look(looking, look, thread)
            now = time.monotonic()
            if now - look.at >= _LEAST_KEPT_S:  # the lock was kept from it, by what the task is at just now
                slept = 0.0
                continue
            due = max(due + wait, now + _LEAST_S)
            slept = due - now
            time.sleep(slept)
        return clock.look(0.0).waits

    def _look(self, looking: Looking, look: Look, thread: int) -> float:
        run = self._current_run()
        if run is None:
            return INTERVAL_S
        stages = run.stages
        return looking.look(run, look, lambda: record_at_hand(sys._current_frames().get(thread), stages))


def _wait_of(native_id: int) -> Callable[[], float | None]:
    """For how many seconds a thread has waited for a processor: Linux says it."""
    path = f"/proc/self/task/{native_id}/schedstat"

    def waited() -> float | None:
        try:
            with open(path, "rb") as file:
                return int(file.read().split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            return None

    return waited


class _Clock:
    """Of a task's thread. What the system does not say stays 0: then less is booked."""

    def __init__(self, thread: int) -> None:
        self._usage: Callable[[], tuple[int, int, float]] = lambda: (0, 0, 0.0)
        with contextlib.suppress(Exception):
            self._usage = _usage_of(thread)

    def look(self, since: float) -> Look:
        """`since`: when it was to be, at the earliest."""
        at = time.monotonic()
        return Look(at, at - since, *self._usage())


def _usage_of(thread: int) -> Callable[[], tuple[int, int, float]]:
    """Raises where the system does not say it."""
    from resource import RUSAGE_SELF, RUSAGE_THREAD, getrusage

    clock = time.pthread_getcpuclockid(thread)

    def usage() -> tuple[int, int, float]:
        """`waits`, `preempted` and `used` of a look."""
        return getrusage(RUSAGE_THREAD).ru_nvcsw, getrusage(RUSAGE_SELF).ru_nivcsw, time.clock_gettime(clock)

    return usage

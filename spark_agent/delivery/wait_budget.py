"""How long an application may wait for its broker, in all: the budget that bounds what lineage can cost.

Promises that the waits of one process last `budget_s` together and half a percent of the time that passes,
however often and however slowly the broker answers. Processes that share a file share the budget: a wait of
one is reported to the others, and waits at the same time count once. Short waits that were answered, which a
healthy broker needs too, are free. Knows nothing of Kafka and never raises.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable

#: A wait for a healthy broker's answer; such a wait costs nothing of the budget.
QUICK_S = 0.05
#: What comes back of a spent budget in each second: without it, a job of hours would lose its end beside a
#: broker that is now and then a little late.
REFILL = 0.005
#: After a wait without an answer nothing waits for so long; then twice as long, each time.
PAUSE_S = 20.0
MAX_PAUSE_S = 600.0


class WaitBudget:
    """What is left of a budget of waiting. `path` is a file that other processes have too.

    The clock must be the same in all of them: `time.monotonic` is, on one machine.
    """

    def __init__(
        self,
        budget_s: float,
        path: str | None = None,
        *,
        forgives_answers: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._budget_s = budget_s
        self._path = path
        self._forgives_answers = forgives_answers  # only waits without an answer cost something
        self._clock = clock
        self._spent_s = 0.0
        self._waited_until = 0.0  # the end of the latest wait that was paid for
        self._paused_until = 0.0
        self._pause_s = PAUSE_S
        self._version = 0  # of the file, as far as it is known here

    @property
    def left_s(self) -> float:
        return max(0.0, self._budget_s - self._spent_at(self._clock()))

    def _spent_at(self, now: float) -> float:
        return max(0.0, self._spent_s - REFILL * max(0.0, now - self._waited_until))

    @property
    def is_paused(self) -> bool:
        """Nobody waits now: the broker did not answer a short while ago."""
        self._read()
        return self._clock() < self._paused_until

    def allowed_s(self) -> float:
        """How long the next wait may last. A budget that is spent still allows a quick one."""
        if self.is_paused:
            return 0.0
        return self._budget_s if self._forgives_answers else max(QUICK_S, self.left_s)

    def charge(self, begin: float, *, is_answered: bool) -> None:
        """A wait from `begin` until now is over."""
        end = self._clock()
        is_free = end - begin <= QUICK_S or self._forgives_answers
        if is_answered and is_free:
            self._pause_s = PAUSE_S
            return

        def pay() -> None:
            # The part of it in which no other process waited: waits side by side delay a job once.
            alone = max(0.0, end - max(begin, self._waited_until))
            self._spent_s = self._spent_at(begin) + alone
            self._waited_until = max(self._waited_until, end)
            if not is_answered and end >= self._paused_until:  # else another has begun the pause meanwhile
                self._paused_until = end + self._pause_s
                self._pause_s = min(2 * self._pause_s, MAX_PAUSE_S)

        self._share(pay)

    def pause(self) -> None:
        """Wait for nothing for a while: another process has waited in vain."""
        self._paused_until = max(self._paused_until, self._clock() + PAUSE_S)

    def answered(self) -> None:
        """The broker took a message. A broker that is merely too slow is not waited for because of that."""
        if self._paused_until and self.left_s > self._budget_s / 4:
            self._paused_until, self._pause_s = 0.0, PAUSE_S

    # -- the file ------------------------------------------------------------------------------------

    def _read(self) -> None:
        if self._path is None:
            return
        try:
            version = os.stat(self._path).st_mtime_ns
            if version == self._version:
                return
            with open(self._path, encoding="ascii") as file:
                self._adopt(file.read())
            self._version = version
        except OSError:  # no wait has cost anything yet
            return

    def _share(self, change: Callable[[], None]) -> None:
        """Apply `change` to what all processes know together, and let them know."""
        if self._path is None:
            change()
            return
        try:
            import fcntl

            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(self._path, flags, 0o600), "r+", encoding="ascii") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                self._adopt(file.read())
                change()
                change = _nothing
                file.seek(0)
                json.dump([self._spent_s, self._waited_until, self._paused_until, self._pause_s], file)
                file.truncate()
        except (OSError, ImportError):  # a folder that cannot be written: this process counts for itself
            change()

    def _adopt(self, text: str) -> None:
        """What the file says, where that is stricter."""
        with contextlib.suppress(ValueError, TypeError):
            spent, waited_until, paused_until, pause = map(float, json.loads(text))
            # A file from before a restart of the machine speaks of another clock.
            latest = self._clock() + MAX_PAUSE_S
            if waited_until >= self._waited_until:
                self._spent_s, self._waited_until = max(0.0, spent), min(waited_until, self._clock())
            self._paused_until = max(self._paused_until, paused_until if paused_until < latest else 0.0)
            self._pause_s = max(self._pause_s, min(pause, MAX_PAUSE_S))


def _nothing() -> None:
    pass

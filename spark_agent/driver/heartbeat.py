"""Says each minute that the driver is there, so that one which died without a word is noticed.

Promises one small message a minute from one daemon thread, the first at once, and nothing after `stop`. A
message that is lost is no loss: the next one says the same.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

PERIOD_S = 60.0


class Heartbeat:
    """`beat` sends one sign of life; it must not raise."""

    def __init__(self, beat: Callable[[], None], period_s: float = PERIOD_S) -> None:
        self._beat = beat
        self._period_s = period_s
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lineage-alive", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()

    def _run(self) -> None:
        self._beat()
        while not self._is_over.wait(self._period_s):
            self._beat()

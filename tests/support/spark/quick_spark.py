"""What makes PySpark quicker to end, which tests do hundreds of times. Jobs do not see it."""

from __future__ import annotations

import select
from types import SimpleNamespace
from typing import Any

from pyspark import accumulators


def stop_without_waiting() -> None:
    """The server of accumulators looks for the end of its context every 20 ms, not once a second."""
    accumulators.select = SimpleNamespace(
        poll=_Poll, select=select.select, POLLIN=select.POLLIN, POLLHUP=select.POLLHUP, error=select.error
    )


class _Poll:
    def __init__(self) -> None:
        poll = select.poll()
        self._poll, self.register, self.unregister = poll.poll, poll.register, poll.unregister

    def poll(self, milliseconds: float) -> list[Any]:
        return self._poll(min(milliseconds, 20))

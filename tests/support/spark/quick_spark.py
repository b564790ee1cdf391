"""What makes PySpark quicker in tests, which begin and end it hundreds of times. Jobs do not see it."""

from __future__ import annotations

import select
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark
from pyspark import accumulators

#: Of the environment of a job whose executors have a Python without PySpark (see `brief_jvm.make_home`).
WITH_ZIP_OF_PYSPARK = {"SPARK_HOME": str(Path(pyspark.__file__).parent)}


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

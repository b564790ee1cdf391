"""What makes PySpark quicker to start and to end, which tests do hundreds of times. Jobs do not see it."""

from __future__ import annotations

import select
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark
from pyspark import accumulators

_ZIP = "pyspark.zip"


def make_spark_home(folder: Path) -> None:
    """A SPARK_HOME of links to the installed PySpark, without the zip of its Python.

    Python workers import PySpark from there where it is, and compile all of it at each start: two seconds of
    a core for each application. Without it they import the installed one, which is compiled.
    """
    installed = Path(pyspark.__file__).parent
    libraries = Path("python", "lib")
    (folder / libraries).mkdir(parents=True)
    for path in installed.iterdir():
        if path.name in ("bin", "sbin", "jars", "data"):
            (folder / path.name).symlink_to(path)
    for path in (installed / libraries).iterdir():
        if path.name != _ZIP:
            (folder / libraries / path.name).symlink_to(path)


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

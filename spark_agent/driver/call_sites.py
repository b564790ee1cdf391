"""Where the user's program called PySpark: `FILE:LINE`; in a notebook `In [3]:2`, line 2 of its third cell.

Promises a place of the user's or none: frames of PySpark, py4j, Python's own library, IPython and this
package are passed by. Looks at frames and at what IPython has noted of its cells, and imports neither.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import sysconfig
import threading
from collections.abc import Iterable
from types import FrameType, ModuleType
from typing import Any

from spark_agent.driver.shipping import AGENT_FOLDER

_PYTHONS = os.path.realpath(sysconfig.get_paths()["stdlib"]) + os.sep
#: Folders below Python's own whose modules are not Python's own.
_INSTALLED = re.compile(r"[\\/](site|dist)-packages[\\/]")
#: What Python and IPython (`%time`, `%timeit`) name code that stands in no cell and no file.
_NAMELESS = ("<frozen ", "<timed ", "<magic-timeit>")
#: How the terminal of IPython names its cells.
_CELL = re.compile(r"<ipython-input-(\d+)-")
#: Of one file, of which an operator is: each is named.
_MOST_LINES = 4
#: Asks for a query as Arrow, which a thread of the JVM's own then runs, and reads what comes.
_ARROW = "_collect_as_arrow"


def call_site() -> str:
    """Where this thread's innermost call out of the user's program stands; empty where there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_of_user(frame.f_code.co_filename):
        frame = frame.f_back
    return "" if frame is None else _place(frame)


def together(places: Iterable[str]) -> str:
    """Several places as one text: `job.py:10, 12`; of many, first and last: `job.py:10 ... 45`."""
    lines: dict[str, set[int]] = {}
    for place in places:
        file, _, line = place.rpartition(":")
        if line.isdecimal():
            lines.setdefault(file, set()).add(int(line))
        elif place:
            lines.setdefault(place, set())
    return ", ".join(_lines(file, sorted(numbers)) for file, numbers in lines.items())


def _lines(file: str, numbers: list[int]) -> str:
    if not numbers:
        return file
    if len(numbers) > _MOST_LINES:
        return f"{file}:{numbers[0]} ... {numbers[-1]}"
    return f"{file}:{', '.join(map(str, numbers))}"


class Callers:
    """Tells which call of the user's program a query is of, when the JVM asks for the query's plan.

    The JVM calls back while the thread that made the call waits in PySpark. Where each thread of Python has
    one of the JVM's to itself (`is_pinned`), py4j calls back on the waiting thread. For a thread that was
    connected before there were callbacks it takes one of its own: such a thread has to be `note`d.
    """

    def __init__(self, *, is_pinned: bool) -> None:
        self._is_pinned = is_pinned
        self._noted: dict[int, int] = {}

    def note(self, java_thread: int) -> None:
        """That this thread of Python has that thread of the JVM."""
        self._noted[java_thread] = threading.get_ident()

    def action(self, method: str, java_thread: int | None) -> tuple[str, str]:
        """The name of the action and the place that called it, as far as they are known.

        `method` is that of Spark SQL which the JVM runs, Class.method, on the thread `java_thread`; None if
        that is a thread which no thread of Python waits for.
        """
        is_arrow = method.endswith(".withAction")
        name, place = self._waiting(java_thread, is_arrow) or ("", "")
        return name or method.partition(".")[2] or "query", place

    def _waiting(self, java_thread: int | None, is_arrow: bool) -> tuple[str, str] | None:
        mine = _call(sys._getframe(1), is_arrow=False)
        if mine is not None:
            return mine
        frames = sys._current_frames()
        frames.pop(threading.get_ident(), None)
        if self._is_pinned:
            if java_thread in self._noted:
                frame = frames.get(self._noted[java_thread])
                return None if frame is None else _call(frame, is_arrow=False)
            if java_thread is None and not is_arrow:
                return None
            if java_thread is not None:
                for ident in self._noted.values():
                    frames.pop(ident, None)
        waiting = [call for frame in frames.values() if (call := _call(frame, is_arrow=is_arrow)) is not None]
        return waiting[0] if len(waiting) == 1 else None


def _call(frame: FrameType | None, *, is_arrow: bool) -> tuple[str, str] | None:
    """The method of PySpark that a thread waits in for the JVM, and who called it; None if in none.

    Its name is empty where the user's program speaks to py4j itself.
    """
    py4j, spark = _folder("py4j"), _folder("pyspark")
    name, is_waiting = "", False
    while frame is not None:
        code = frame.f_code
        if is_of_user(code.co_filename):
            if is_waiting:
                return name, _place(frame)
            if not is_arrow:  # what reads Arrow is of other packages
                return None
        elif code.co_filename.startswith(py4j):
            is_waiting = is_waiting or not is_arrow
        elif code.co_filename.startswith(spark):
            is_waiting = is_waiting or (is_arrow and code.co_name == _ARROW)
            name = code.co_name if is_waiting else ""
        frame = frame.f_back
    return (name, "") if name else None


def _place(frame: FrameType) -> str:
    file = frame.f_code.co_filename
    cell = _cell(file)
    return f"{file if cell is None else f'In [{cell}]'}:{frame.f_lineno}"


def _cell(file: str) -> str | None:
    """The number of the cell that IPython compiled under this name; of one that ran again, the last."""
    if "IPython" not in sys.modules:
        return None
    try:
        shell: Any = sys.modules["IPython"].get_ipython()
        number = shell.compile._filename_map.get(file)
    except Exception:  # noqa: BLE001 - another version of IPython, or no shell: then the name has to do
        number = None
    if number is not None:
        return str(number)
    named = _CELL.match(file)
    return None if named is None else named[1]


@functools.lru_cache(maxsize=4096)
def is_of_user(file: str) -> bool:
    """Is this a file of the user's program or of what it has installed, not of Spark or Python?"""
    inside = (AGENT_FOLDER + os.sep, *_NAMELESS, *map(_folder, ("pyspark", "py4j", "IPython", "ipykernel")))
    if file.startswith(inside):
        return False
    return not os.path.realpath(file).startswith(_PYTHONS) or _INSTALLED.search(file) is not None


def _folder(package: str) -> str:
    """Where a package is that has been imported; else what no file begins with."""
    module: ModuleType | None = sys.modules.get(package)
    file = getattr(module, "__file__", None)
    return os.path.dirname(os.path.abspath(file)) + os.sep if file else "\0"

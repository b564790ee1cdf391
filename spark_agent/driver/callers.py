"""Which call of the user's program a query is of, found while that call waits for the JVM.

Promises no call rather than a wrong one: where several threads wait and none can be told from the others, the
query has none. Looks at the frames of threads, and changes none.
"""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import NamedTuple

from spark_agent.driver.call_sites import is_of_user, package_folder, site_of

#: Asks for a query as Arrow, which a thread of the JVM then runs, and reads what comes.
_ARROW = "_collect_as_arrow"


class Call(NamedTuple):
    """A method of PySpark that a thread waits in, and the line of the user's program that called it.

    The name is empty where the program speaks to py4j itself, the site where it is not known.
    """

    name: str
    site: str


_NOBODY: tuple[FrameType | None, Call] = None, Call("", "")


class Callers:
    """Finds the call of the user's program that a query is of, when the JVM asks for the query's plan.

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

    def action(self, method: str, java_thread: int | None) -> Call:
        """The action and who called it, as far as this can be found out.

        `method` is that of Spark SQL which the JVM runs, Class.method, on the thread `java_thread`; None if
        that is a thread which no thread of Python waits for.
        """
        _, call = self._waiting(method, java_thread)
        return Call(call.name or method.partition(".")[2] or "query", call.site)

    def frame(self, method: str, java_thread: int | None) -> FrameType | None:
        """The innermost frame of the thread that waits in this call, if it is known which thread does."""
        return self._waiting(method, java_thread)[0]

    def _waiting(self, method: str, java_thread: int | None) -> tuple[FrameType | None, Call]:
        is_arrow = method.endswith(".withAction")
        own_call = _call(own_frame := sys._getframe(1), is_arrow=False)
        if own_call is not None:
            return own_frame, own_call
        frames = sys._current_frames()
        frames.pop(threading.get_ident(), None)
        if self._is_pinned:
            if java_thread in self._noted:
                frame = frames.get(self._noted[java_thread])
                call = None if frame is None else _call(frame, is_arrow=False)
                return _NOBODY if call is None else (frame, call)
            if java_thread is None and not is_arrow:
                return _NOBODY
            if java_thread is not None:
                for ident in self._noted.values():
                    frames.pop(ident, None)
        calls = [
            (frame, call)
            for frame in frames.values()
            if (call := _call(frame, is_arrow=is_arrow)) is not None
        ]
        return calls[0] if len(calls) == 1 else _NOBODY


def _call(frame: FrameType | None, *, is_arrow: bool) -> Call | None:
    """What a thread waits in for the JVM; None if in nothing.

    Its name is empty where the user's program speaks to py4j itself.
    """
    py4j, spark = package_folder("py4j"), package_folder("pyspark")
    name, is_waiting = "", False
    while frame is not None:
        code = frame.f_code
        if is_of_user(code.co_filename):
            if is_waiting:
                return Call(name, site_of(frame))
            if not is_arrow:  # what reads Arrow is of other packages
                return None
        elif code.co_filename.startswith(py4j):
            is_waiting = is_waiting or not is_arrow
        elif code.co_filename.startswith(spark):
            is_waiting = is_waiting or (is_arrow and code.co_name == _ARROW)
            name = code.co_name if is_waiting else ""
        frame = frame.f_back
    return Call(name, "") if name else None

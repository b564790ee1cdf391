"""Which method of PySpark a query is of, and where the user's program called it."""

from __future__ import annotations

import os
import sys
import threading
from types import FrameType

_SPARK = os.sep + "pyspark" + os.sep
_PY4J = os.sep + "py4j" + os.sep
#: Asks for a query as Arrow, which a thread of the JVM's own then runs, and reads what comes.
_ARROW = "_collect_as_arrow"


def action(entry: str) -> tuple[str, str]:
    """The name of the action and the place in the user's program that called it, as far as they are known.

    The optimiser calls back on a thread of its own, while the user's thread waits in PySpark: where only one
    does, it is that.
    """
    is_arrow = entry.endswith(".withAction")
    waiting = [
        _waiting(frame, is_arrow)
        for thread, frame in sys._current_frames().items()
        if thread != threading.get_ident()
    ]
    found = [each for each in waiting if each is not None]
    return found[0] if len(found) == 1 else (entry.partition(".")[2] or "query", "")


def _waiting(frame: FrameType | None, is_arrow: bool) -> tuple[str, str] | None:
    """The method of PySpark that a thread waits in, and who called it."""
    name, is_waiting = "", False
    while frame is not None:
        file = frame.f_code.co_filename
        if _SPARK in file and is_waiting:
            name = frame.f_code.co_name
        elif frame.f_code.co_name == _ARROW if is_arrow else _PY4J in file:
            is_waiting = True
        elif name:
            return name, f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return None

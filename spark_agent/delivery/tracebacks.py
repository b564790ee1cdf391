"""Tracebacks without the agent's own frames, and where in a user's program an error came from."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

_AGENT_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_OF_SPARK = re.compile(r"[/\\](?:pyspark|py4j|spark_agent)[/\\]|pyspark\.zip|py4j-[^/\\]*\.zip")


def is_of_spark(file: str) -> bool:
    """Is it a file of Spark's Python part, or of the agent?"""
    return _OF_SPARK.search(file) is not None


def innermost_line(passed: TracebackType | None) -> str | None:
    """FILE:LINE of the innermost line of the user's program in a traceback."""
    frame = None
    for passed_frame, line in traceback.walk_tb(passed):
        file = passed_frame.f_code.co_filename
        is_library = file.startswith(
            (_AGENT_FOLDER, "<frozen", sys.prefix + os.sep, sys.base_prefix + os.sep + "lib")
        )
        if not is_library and not is_of_spark(file):
            frame = f"{file}:{line}"
    return frame


def hide_agent(error: BaseException) -> None:
    """Take the agent's frames out of the tracebacks of `error` and of what led to it: its user reads them."""
    seen: set[int] = set()
    chained: BaseException | None = error
    while chained is not None and id(chained) not in seen:
        seen.add(id(chained))
        entry, entries = chained.__traceback__, []
        while entry is not None:
            if not entry.tb_frame.f_globals.get("__name__", "").startswith("spark_agent."):
                entries.append(entry)
            entry = entry.tb_next
        for index, entry in enumerate(entries):
            entry.tb_next = entries[index + 1] if index + 1 < len(entries) else None
        chained.__traceback__ = entries[0] if entries else None
        chained = chained.__cause__ or chained.__context__


def hiding(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, of whose errors nobody sees that the agent stands around them."""

    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            hide_agent(error)
            raise

    return called

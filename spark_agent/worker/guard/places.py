"""Where in the user's program something happens, and whose code asks for it.

Looks at the frames of this thread, and changes none. A file is Python's own, a package's, or the user's.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from types import FrameType

__all__ = [
    "caller",
    "frames",
    "is_installed",
    "is_of",
    "is_of_agent",
    "is_of_python",
    "is_of_spark",
    "is_of_user",
    "place_of_user",
]

_PYTHONS = os.path.realpath(sysconfig.get_paths()["stdlib"]) + os.sep
_STDLIB = (_PYTHONS, sysconfig.get_paths()["stdlib"] + os.sep)
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
#: The package `spark_agent`, installed or in the archive that goes to executors.
_AGENT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep


def is_of_python(file: str) -> bool:
    """Is it a module of Python's own library, or no file at all?"""
    return file.startswith("<frozen ") or (file.startswith(_STDLIB) and not is_installed(file))


def is_installed(file: str) -> bool:
    return any(folder in file for folder in _INSTALLED)


def is_of_agent(file: str) -> bool:
    return file.startswith(_AGENT)


def is_of(file: str, package: str) -> bool:
    """Is it a module of a package that is imported?"""
    folder = os.path.dirname(getattr(sys.modules.get(package), "__file__", None) or "")
    return bool(folder) and file.startswith(folder + os.sep)


def is_of_spark(file: str) -> bool:
    """Is it a module of PySpark's or py4j's?"""
    return is_of(file, "pyspark") or is_of(file, "py4j")


def is_of_user(file: str) -> bool:
    """Is it a file of the program's own?"""
    return not (is_of_python(file) or is_installed(file) or is_of_agent(file) or is_of_spark(file))


def frames(frame: FrameType | None, *, with_agent: bool = False) -> Iterator[FrameType]:
    """The frames of this thread from `frame` on, innermost first, without those of this agent."""
    while frame is not None:
        if with_agent or not is_of_agent(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def caller(folder: str) -> FrameType | None:
    """The innermost frame that is neither in `folder` of Python's library nor the agent's."""
    for frame in frames(sys._getframe(1)):
        file = frame.f_code.co_filename
        is_within = is_of_python(file) and folder in file
        if is_within and frame.f_code.co_name == "<module>":
            return frame  # as it is imported
        if not is_within and not file.startswith("<frozen "):
            return frame
    return None


def place_of_user() -> str:
    """`job.py:12`: the innermost line of the user's program; where none is on the way, of a package."""
    of_package = ""
    for frame in frames(sys._getframe(1)):
        file = frame.f_code.co_filename
        if is_of_python(file) or is_of_spark(file):
            continue
        place = f"{os.path.basename(file)}:{frame.f_lineno}"
        if not is_installed(file):
            return place
        of_package = of_package or place
    return of_package

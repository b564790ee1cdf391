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


def call_site() -> str:
    """Where this thread's innermost call out of the user's program stands; empty where there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_of_user(frame.f_code.co_filename):
        frame = frame.f_back
    return "" if frame is None else site_of(frame)


def called() -> str:
    """The function of PySpark that this thread's user program has called, the outermost; empty of none."""
    spark, name = package_folder("pyspark"), ""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_of_user(frame.f_code.co_filename):
        if frame.f_code.co_filename.startswith(spark):
            name = frame.f_code.co_name
        frame = frame.f_back
    return name


def merged_sites(sites: Iterable[str]) -> str:
    """Several call sites as one text: `job.py:10, 12`; of many, first and last: `job.py:10 ... 45`."""
    lines: dict[str, set[int]] = {}
    for site in sites:
        file, _, line = site.rpartition(":")
        if line.isdecimal():
            lines.setdefault(file, set()).add(int(line))
        elif site:
            lines.setdefault(site, set())
    return ", ".join(_lines(file, sorted(numbers)) for file, numbers in lines.items())


def _lines(file: str, numbers: list[int]) -> str:
    if not numbers:
        return file
    if len(numbers) > _MOST_LINES:
        return f"{file}:{numbers[0]} ... {numbers[-1]}"
    return f"{file}:{', '.join(map(str, numbers))}"


def site_of(frame: FrameType) -> str:
    """The line at which `frame` is."""
    return named_place(frame.f_code.co_filename, frame.f_lineno)


def named_place(file: str, line: int) -> str:
    """A line of a file, or of the cell that IPython compiled under this name."""
    cell = _cell(file)
    return f"{file if cell is None else f'In [{cell}]'}:{line}"


def is_cell(file: str) -> bool:
    """Is this the name under which IPython compiled a cell?"""
    return _cell(file) is not None


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
    packages = map(package_folder, ("pyspark", "py4j", "IPython", "ipykernel"))
    if file.startswith((AGENT_FOLDER + os.sep, *_NAMELESS, *packages)):
        return False
    return not os.path.realpath(file).startswith(_PYTHONS) or _INSTALLED.search(file) is not None


@functools.lru_cache(maxsize=4096)
def is_installed(file: str) -> bool:
    """Is this a file of an installed package, not of the program's own code?"""
    return _INSTALLED.search(os.path.realpath(file)) is not None


def package_folder(package: str) -> str:
    """Where a package is that has been imported; else what no file begins with."""
    module: ModuleType | None = sys.modules.get(package)
    file = getattr(module, "__file__", None)
    return os.path.dirname(os.path.abspath(file)) + os.sep if file else "\0"

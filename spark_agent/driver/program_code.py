"""Which files the program's own code is in, and a hash of it.

`lineage trigger` compares the hash with that of the files as they are later. Looks at the modules that the
program has imported so far, runs none of their code, and never raises.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from spark_agent.contract.program_code import MAX_CODE_BYTES, MAX_CODE_FILES, hash_of_files
from spark_agent.delivery.log import logger

__all__ = ["program_code"]

_ARCHIVES = (".zip", ".egg", ".whl")
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
#: Packages that are not the program's, wherever they stand.
_OTHERS = ("pyspark", "py4j", "spark_agent")


def program_code(py_files: str) -> dict[str, Any]:
    """Fields of the start of an application; none where the program is no file, as in a notebook.

    `py_files` is Spark's setting of that name.
    """
    try:
        files = _files(py_files)
        return {"code": hash_of_files(files), "code_files": files} if files else {}
    except Exception as error:  # noqa: BLE001 - code that cannot be read is not known
        logger.debug("the code of the program is not known: %r", error)
        return {}


def _files(py_files: str) -> list[str]:
    """In order, the main file first. Empty where they are not all known."""
    main = _file_of(sys.modules.get("__main__"))
    if main is None:
        return []
    others = {*_imported(), *_added(py_files)} - {main}
    files = [main, *sorted(others)]
    is_small = len(files) <= MAX_CODE_FILES and sum(map(os.path.getsize, files)) <= MAX_CODE_BYTES
    return files if is_small else []


def _imported() -> Iterator[str]:
    folders = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
    installed = tuple(
        {os.path.join(path, "") for folder in folders for path in (folder, os.path.realpath(folder))}
    )
    for name, module in list(sys.modules.items()):
        path = None if name.partition(".")[0] in _OTHERS else _path_of(module)
        # By its text: to look at the files of a thousand modules would take longer than all else.
        if path is None or path.startswith(installed) or any(part in path for part in _INSTALLED):
            continue
        file = _file_at(path)
        if file is not None:
            yield file


def _file_of(module: Any) -> str | None:
    """The source of a module, or the archive that it is in; None of what has none."""
    path = _path_of(module)
    return None if path is None else _file_at(path, is_main=True)


def _path_of(module: Any) -> str | None:
    if not issubclass(type(module), ModuleType):
        return None
    # A module that is imported when it is looked at stays as it is.
    path = object.__getattribute__(module, "__dict__").get("__file__")
    return path if type(path) is str else None


def _file_at(path: str, *, is_main: bool = False) -> str | None:
    path = os.path.realpath(path)
    if os.path.isfile(path):
        return path if is_main or path.endswith(".py") else None
    return next(
        (outer for outer in _outer(path) if outer.endswith(_ARCHIVES) and os.path.isfile(outer)), None
    )


def _outer(path: str) -> Iterator[str]:
    while os.path.dirname(path) != path:
        path = os.path.dirname(path)
        yield path


def _added(py_files: str) -> Iterable[str]:
    """Raises OSError of one that is not on this machine."""
    for path in filter(None, map(str.strip, py_files.split(","))):
        path = path[len("file:") :] if path.startswith("file:") else path
        yield os.path.realpath("/" + path.lstrip("/") if path.startswith("//") else path)

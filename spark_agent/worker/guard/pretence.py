"""Removing an old output before the new one is written: pretended, since the replay writes elsewhere.

Holds for what the original application wrote and did not read. Promises that nothing is removed: a function
that removes does nothing there, and notes it. What is no such output goes to Python's own function, where the
guard judges it.
"""

from __future__ import annotations

import functools
import os
import posix
import sys
from collections.abc import Callable, Iterable
from typing import Any

from spark_agent.worker.guard.paths import Unresolved, exists, resolved
from spark_agent.worker.guard.refusals import Refusals
from spark_agent.worker.guard.territory import is_below

__all__ = ["Pretence", "pure_outputs"]


def pure_outputs(outputs: Iterable[str], protected: Iterable[str]) -> list[str]:
    """Those local outputs, resolved, that share no file with an input."""
    own = {path for path in map(_local, outputs) if path}
    inputs = {path for path in map(_local, protected) if path} - own
    return sorted(
        path
        for path in own
        if path != "/" and not any(is_below(path, one) or is_below(one, path) for one in inputs)
    )


def _local(path: str) -> str:
    """The resolved path of a local file or folder; empty of another file system's."""
    for scheme in ("file://", "file:"):
        if path.startswith(scheme):
            path = path[len(scheme) :]
            break
    if not path.startswith("/"):
        return ""
    try:
        return resolved(path)
    except OSError:
        return ""


class Pretence:
    """Of one replay."""

    def __init__(self, outputs: Iterable[str], refusals: Refusals) -> None:
        self._outputs = tuple(outputs)
        self._refusals = refusals
        self._removed: set[str] = set()

    def begin(self) -> None:
        """Put it before what removes files, and before what makes a removed folder again."""
        if not self._outputs:
            return
        import shutil

        for module in (os, posix):
            for name in ("remove", "unlink"):
                self._replace(module, name, "remove")
            self._replace(module, "rmdir", "remove the folder")
            _wrap(module, "mkdir", self._making)
        os.supports_dir_fd.update((os.unlink, os.rmdir, os.mkdir))
        self._replace(shutil, "rmtree", "remove the folder")

    def _replace(self, module: Any, name: str, what: str) -> None:
        _wrap(module, name, lambda original, *args, **kwargs: self._removing(original, what, *args, **kwargs))

    def _removing(self, original: Callable[..., Any], what: str, path: Any, *args: Any, **kwargs: Any) -> Any:
        name = _resolved(path, kwargs.get("dir_fd"))
        if name is None or not self._is_output(name) or not exists(name):
            return original(path, *args, **kwargs)
        self._removed.add(name)
        self._refusals.pretended(what, os.fsdecode(path))
        return None

    def _making(self, original: Callable[..., Any], path: Any, *args: Any, **kwargs: Any) -> Any:
        name = _resolved(path, kwargs.get("dir_fd"))
        if name is not None and any(is_below(name, removed) for removed in self._removed):
            self._refusals.pretended("make the folder", os.fsdecode(path))
            return None
        return original(path, *args, **kwargs)

    def _is_output(self, name: str) -> bool:
        return any(is_below(name, output) for output in self._outputs)


def _wrap(module: Any, name: str, instead: Callable[..., Any]) -> None:
    original = getattr(module, name)

    @functools.wraps(original)
    def pretending(*args: Any, **kwargs: Any) -> Any:
        return instead(original, *args, **kwargs)

    setattr(module, name, pretending)


def _resolved(path: Any, folder: Any) -> str | None:
    try:
        return resolved(os.fspath(path), -1 if folder is None else folder, follows=False)
    except (Unresolved, OSError, TypeError, ValueError):
        return None


#: Modules that take functions of `os` for methods of theirs when they are imported (pathlib of Python 3.10).
if sys.version_info < (3, 11):
    import pathlib  # noqa: F401

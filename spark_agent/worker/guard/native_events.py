"""Judges what goes behind Python's back: foreign functions, and calls of `os` that raise no event.

Foreign functions can do anything. The user's own program calls none in a replay. Installed packages may, but
of the C library only those that change nothing on the disk. What C libraries of packages write is not seen
here: the kernel's fence is for that (`kernel.py`).
"""

from __future__ import annotations

import functools
import os
import posix
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from spark_agent.worker.guard.file_events import WRITING, FileEvents
from spark_agent.worker.guard.places import caller, is_installed, is_of_python, is_of_spark
from spark_agent.worker.guard.process_events import ProcessEvents
from spark_agent.worker.guard.refusals import Refusals

__all__ = ["NativeEvents"]

Judge = Callable[..., None]
_ADVICE = "a foreign function can change anything: leave this step out of the script that is replayed"
#: Libraries that have the system's calls: the process itself, the C library and its kin.
_OF_SYSTEM = ("libc.", "libc-", "libpthread", "libdl", "librt", "ld-linux", "ld-musl", "libSystem")
#: Functions of them that packages look at the machine with, or care for memory and threads.
_HARMLESS = frozenset(
    (
        *("calloc", "free", "mallinfo", "mallinfo2", "malloc", "malloc_trim", "mallopt", "realloc"),
        *("malloc_usable_size", "memcmp", "memcpy", "memmove", "memset", "strerror", "strlen"),
        *("clock_gettime", "geteuid", "getpagesize", "getpid", "getrusage", "gettid", "sysconf"),
        *("dl_iterate_phdr", "dlinfo", "gnu_get_libc_version", "pthread_self"),
        *("sched_getaffinity", "sched_getcpu"),
    )
)
#: What makes interpreters beside this one, with hooks of their own; not each Python raises the event.
_INTERPRETERS = ("_interpreters", "_xxsubinterpreters")


class NativeEvents:
    """Judges by the territory of the file events."""

    def __init__(self, files: FileEvents, refusals: Refusals) -> None:
        self._files = files
        self._refusals = refusals

    def judges(self) -> Mapping[str, Judge]:
        return {
            "ctypes.dlopen": self._load,
            "ctypes.dlsym": self._function,
            "ctypes.dlsym/handle": lambda handle, name: self._function(None, name),
            "socket.sethostname": lambda name: self._refusals.refuse("name this machine", str(name)),
        }

    # -- foreign functions ----------------------------------------------------------------------------

    def _load(self, name: object) -> None:
        if self._is_of_user():
            self._refusals.refuse("load the library", str(name or "of this process"), _ADVICE)

    def _function(self, library: Any, name: object) -> None:
        of = str(getattr(library, "_name", None) or "")
        if self._is_of_user():
            self._refusals.refuse("call the foreign function", str(name), _ADVICE)
        is_of_system = not of or os.path.basename(of).startswith(_OF_SYSTEM)
        is_of_python = isinstance(name, str) and name.startswith("Py")
        if is_of_system and not is_of_python and name not in _HARMLESS:
            self._refusals.refuse("call the foreign function", str(name), _ADVICE)

    def _is_of_user(self) -> bool:
        """Is it the user's own program that asks ctypes?"""
        frame = caller("ctypes")
        if frame is None:
            return False
        file = frame.f_code.co_filename
        return not (is_installed(file) or is_of_python(file) or is_of_spark(file))

    # -- calls that raise no event ----------------------------------------------------------------------

    def watch_unseen(self, processes: ProcessEvents) -> None:
        """Put a judge before functions of Python that raise no event, or one that says too little."""
        for module in (os, posix):
            _before(module, "mkfifo", self._made("make the pipe"))
            _before(module, "mknod", self._made("make the device"))
            self._change_open(module)
            for name in ("chroot", "unshare", "setns"):
                _before(module, name, self._never(name))
        os.supports_dir_fd.update((os.open, os.mkfifo, os.mknod))
        _before(time, "clock_settime", self._never("clock_settime"))
        for name in _INTERPRETERS:
            try:
                module = __import__(name)
            except ImportError:
                continue
            _before(module, "create", lambda *_, **__: self._refusals.refuse("start another interpreter"))
        spawning = sys.modules.get("_posixsubprocess") or __import__("_posixsubprocess")
        _before(
            spawning,
            "fork_exec",
            lambda arguments, executables, close, keep, folder, environment, *_: processes.start(
                executables, arguments, environment
            ),
        )

    def _made(self, what: str) -> Judge:
        return lambda path, *_, dir_fd=-1, **__: self._files.named(what, os.fspath(path), dir_fd)

    def _never(self, name: str) -> Judge:
        return lambda *_, **__: self._refusals.refuse(f"call {name}()")

    def _change_open(self, module: Any) -> None:
        """The event of `open` does not say from which folder, so that folder becomes part of the path."""
        original = module.open

        @functools.wraps(original)
        def opening(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
            if dir_fd is None or not flags & WRITING or os.fsdecode(path).startswith("/"):
                return int(original(path, flags, mode, dir_fd=dir_fd))
            return int(original(f"/proc/self/fd/{dir_fd}/{os.fsdecode(path)}", flags, mode))

        module.open = opening


def _before(module: Any, name: str, judge: Judge) -> None:
    """Replace a function by one that asks `judge` first, with the same arguments."""
    original = getattr(module, name, None)
    if original is None or hasattr(original, "_judged"):
        return

    @functools.wraps(original)
    def judged(*args: Any, **kwargs: Any) -> Any:
        judge(*args, **kwargs)
        return original(*args, **kwargs)

    judged._judged = True  # type: ignore[attr-defined]
    setattr(module, name, judged)

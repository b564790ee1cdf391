"""The kernel's own fence: this process, and all that it starts, writes below some folders only (Landlock).

It holds for JVMs, shells and libraries in C, and cannot be taken off. From Linux 5.19 on files may be renamed
from folder to folder within it, which Spark needs. It sees no change of a mode, an owner or a time. The
numbers are those of https://docs.kernel.org/userspace-api/landlock.html.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["confine", "is_offered"]

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1  # a flag of the first, which then answers the version
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38
#: Renaming to another folder, and truncating, are told apart from these versions on.
_OLDEST, _WITH_TRUNCATE = 2, 3
_WRITE, _TRUNCATE = 1 << 1, 1 << 14
#: Remove folder and file; make device, folder, file, socket, pipe, block device, link; move between folders.
_NAMES = sum(1 << bit for bit in (4, 5, 6, 7, 8, 9, 10, 11, 12, 13))
#: So many fences may stand around a process; each Python of the replay adds one.
_TOO_MANY = 7  # E2BIG


def is_offered() -> bool:
    """Has this kernel such a fence?"""
    return _version(_system_call()) >= _OLDEST


def confine(folders: Sequence[str], files: Sequence[str]) -> bool:
    """Let this process change only what is below `folders`, and write into `files`; False if it cannot be.

    Of the thread that calls, and of what it starts: to be called before there are others.
    """
    call = _system_call()
    version = _version(call)
    if version < _OLDEST:
        return False
    of_files = _WRITE | (_TRUNCATE if version >= _WITH_TRUNCATE else 0)
    ruleset = call(_CREATE_RULESET, struct.pack("Q", of_files | _NAMES), 8, 0)
    if ruleset < 0:
        return False
    try:
        for path in folders:
            _allow(call, ruleset, path, of_files | _NAMES)
        for path in files:
            _allow(call, ruleset, path, of_files)
        return _restrict(call, ruleset)
    finally:
        os.close(ruleset)


def _allow(call: Callable[..., int], ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there needs no permission
    try:
        call(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, descriptor), 0)
    finally:
        os.close(descriptor)


def _restrict(call: Callable[..., int], ruleset: int) -> bool:
    import ctypes

    if ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        return False
    return call(_RESTRICT_SELF, ruleset, 0) == 0 or ctypes.get_errno() == _TOO_MANY


def _version(call: Callable[..., int]) -> int:
    return call(_CREATE_RULESET, None, 0, _VERSION)


def _system_call() -> Callable[..., int]:
    """call(number, ...) -> the answer; -1 where the system has none."""
    import ctypes

    try:
        function: Any = ctypes.CDLL(None, use_errno=True).syscall
    except (OSError, AttributeError):
        return lambda *_: -1

    def call(number: int, *arguments: Any) -> int:
        typed = [ctypes.c_long(item) if isinstance(item, int) else item for item in arguments]
        return int(function(ctypes.c_long(number), *typed))

    return call

"""How a program ended: with which error, if with any.

The program's own end decides whether an application failed. An error that was caught is none, and what is
known when a SparkContext stops may change until the interpreter ends: `sys.exit(1)` often stands behind
`spark.stop()`. So an end is published at the stop, since nobody should wait for a notebook's kernel to go. It
is published again at the exit if that says otherwise, but not in a shell or notebook: an error in a cell ends
no application. Threads beside the main one do not count. Never raises into the program.
"""

from __future__ import annotations

import contextlib
import importlib
import opcode
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple


class _Exit(NamedTuple):
    """How the program wanted to leave."""

    error: SystemExit
    outermost: FrameType  # of then
    caller: str | None  # FILE:LINE of who called `sys.exit`; of a raise, the error itself knows it


#: The last that `sys.exit` or `exit` raised in the main thread.
_exit: _Exit | None = None
_is_watching = False


def watch() -> None:
    """Notice from now on with which code the program leaves. What it does goes on as before."""
    global _is_watching
    if _is_watching or is_interactive():
        return
    _is_watching = True
    sys.exit = _noticing(sys.exit)
    with contextlib.suppress(Exception):  # `exit` and `quit`, which `python -S` has not
        quitter: Any = importlib.import_module("_sitebuiltins").Quitter
        quitter.__call__ = _noticing(quitter.__call__)


def _noticing(original: Callable[..., Any]) -> Callable[..., Any]:
    def leave(*args: Any, **kwargs: Any) -> Any:
        global _exit
        try:
            return original(*args, **kwargs)
        except SystemExit as error:
            if threading.current_thread() is threading.main_thread():
                caller = sys._getframe(1)
                line = f"{caller.f_code.co_filename}:{caller.f_lineno}"
                _exit = _Exit(error, _outermost(caller), line)
            raise

    return leave


def is_interactive() -> bool:
    """A person is at a prompt or a notebook: errors come and go, and end nothing."""
    return hasattr(sys, "ps1") or bool(sys.flags.interactive) or ("IPython" in sys.modules and _has_shell())


def _has_shell() -> bool:
    shell = getattr(sys.modules["IPython"], "get_ipython", None)
    return shell is not None and shell() is not None


def under_way() -> BaseException | None:
    """The error that passes through the program now, or is being handled, if it would make it fail."""
    global _exit
    if is_interactive() or threading.current_thread() is not threading.main_thread():
        return None
    error = sys.exc_info()[1]
    if isinstance(error, SystemExit) and (_exit is None or _exit.error is not error):
        # `raise SystemExit(1)`, which nobody else has noticed
        _exit = _Exit(error, _outermost(sys._getframe()), None)
    return error if error is not None and _is_failure(error) else None


def at_exit() -> BaseException | None:
    """With which error the program has ended; for who is called at the interpreter's exit."""
    if is_interactive():
        return None
    last: BaseException | None = getattr(sys, "last_value", None)  # set by the interpreter before its hook
    if last is not None and last.__traceback__ is not None and _is_failure(last):
        frame = last.__traceback__.tb_frame
        if frame is _outermost(frame) and _is_left_by_error(frame):
            return last
    if _exit is not None and _is_failure(_exit.error) and _is_left_by_error(_exit.outermost):
        return _exit.error
    return None


def _is_failure(error: BaseException) -> bool:
    return not isinstance(error, SystemExit) or error.code not in (None, 0)


def _outermost(frame: FrameType) -> FrameType:
    while frame.f_back is not None:
        frame = frame.f_back
    return frame


def _is_left_by_error(frame: FrameType) -> bool:
    """Its last instruction, now that it has ended, is no return: what it could not handle went out of it."""
    return frame.f_lasti >= 0 and not opcode.opname[frame.f_code.co_code[frame.f_lasti]].startswith("RETURN")


def exit_caller() -> str | None:
    """FILE:LINE of who called `sys.exit` or `exit` last, if anybody did."""
    return None if _exit is None else _exit.caller

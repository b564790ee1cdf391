"""How a program ended, and what an error says: the type, one line, and the line of the user's program.

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
import os
import re
import sys
import threading
import traceback
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, NamedTuple

from spark_agent import contract
from spark_agent.delivery.settings import AgentSettings
from spark_agent.driver.shipping import AGENT_FOLDER

MAX_TYPE_CHARACTERS = 200
MAX_MESSAGE_CHARACTERS = 1_000
MAX_FRAME_CHARACTERS = 1_000

#: type, message, frame: as `error` of events.
Error = dict[str, Any]

#: What Python says of an uncaught error, in the text of another one: Spark hands on so what its workers say.
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'^\s+File "(?P<file>[^"]+)", line (?P<line>\d+)')
_ERROR = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$")
_OF_SPARK = re.compile(r"[/\\](?:pyspark|py4j|spark_agent)[/\\]|pyspark\.zip|py4j-[^/\\]*\.zip")
#: The first line of py4j's errors names the call; the error of the JVM follows.
_PY4J = re.compile(r"^An error occurred while calling .*?\.?\n: (?P<error>.*)", re.DOTALL)


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


# -- what an error says ---------------------------------------------------------------------------------


def of_exception(error: BaseException, settings: AgentSettings, name: str = "") -> Error:
    """The error as events have it; `name` is the operation that it belongs to, for the redaction function."""
    if isinstance(error, SystemExit):
        message = f"exit code {error.code}" if isinstance(error.code, int) else str(error.code)
        caller = None if _exit is None else _exit.caller
        fields: Error = {"type": "SystemExit", "message": message, "frame": caller}
    else:
        try:
            fields = of_text(f"{type(error).__name__}: {error}")
        except Exception:  # noqa: BLE001 - an error that cannot say what it is, or a JVM that has gone
            fields = {"type": type(error).__name__, "message": "", "frame": None}
    fields["frame"] = fields["frame"] or _frame_of(error.__traceback__)
    return _bounded(fields, settings, name)


def of_jvm(kind: str, message: str, frame: str, settings: AgentSettings, name: str) -> Error:
    """The same of what the JVM says of a query that failed; `frame` is where the program asked for it."""
    fields = of_text(f"{kind.rpartition('.')[2]}: {message}")
    fields["frame"] = fields["frame"] or frame or None
    return _bounded(fields, settings, name)


def of_text(text: str) -> Error:
    """(type, first line of the message, frame if known) of the error whose text, with its type, this is.

    Where Spark hands on what a Python worker said, it is that error.
    """
    kind, _, message = text.partition(": ")
    if (by_worker := _of_worker(message)) is not None:
        return by_worker
    if (py4j := _PY4J.match(message)) is not None:
        kind, _, message = py4j["error"].partition(": ")
        kind = kind.rpartition(".")[2]
    return {"type": kind, "message": message.strip().partition("\n")[0].strip(), "frame": None}


def _of_worker(message: str) -> Error | None:
    _, mark, report = message.rpartition(_TRACEBACK)
    frame = None
    for line in report.splitlines()[1:] if mark else ():
        if (place := _FRAME.match(line)) is not None:
            if not _OF_SPARK.search(place["file"]):
                frame = f"{place['file']}:{place['line']}"
        elif (error := _ERROR.match(line)) is not None:
            kind = error["type"].rpartition(".")[2]
            return {"type": kind, "message": (error["message"] or "").strip(), "frame": frame}
    return None


def _frame_of(passed: TracebackType | None) -> str | None:
    """FILE:LINE of the innermost line of the user's program."""
    frame = None
    for passed_frame, line in traceback.walk_tb(passed):
        file = passed_frame.f_code.co_filename
        is_library = file.startswith(
            (AGENT_FOLDER, "<frozen", sys.prefix + os.sep, sys.base_prefix + os.sep + "lib")
        )
        if not is_library and not _OF_SPARK.search(file):
            frame = f"{file}:{line}"
    return frame


def _bounded(error: Error, settings: AgentSettings, name: str) -> Error:
    message = _redacted(error["message"], settings.redact, name)
    frame = error["frame"]
    return {
        "type": _cut(error["type"], MAX_TYPE_CHARACTERS),
        "message": _cut(message.partition("\n")[0], MAX_MESSAGE_CHARACTERS),
        "frame": None if frame is None else _cut(frame, MAX_FRAME_CHARACTERS),
    }


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _redacted(message: str, function: str, name: str) -> str:
    """What of a message may leave. It is a value like others: it may hold a record."""
    if not function:
        return message
    try:
        module, _, attribute = function.partition(":")
        allowed = getattr(importlib.import_module(module), attribute)(name, "error", message)
        return contract.whole_text(allowed, MAX_MESSAGE_CHARACTERS)[1]
    except (Exception, SystemExit):  # noqa: BLE001 - a user's function may raise anything
        return contract.WITHHELD[1]

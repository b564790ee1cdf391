"""What an error says in an event: its type, one line, and the line of the user's program.

Where Spark hands on what a Python worker said, it is the worker's error. Promises that no error is described
with the password of a database's address, nor with more than a redaction function lets through, and that
nothing is raised.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

from spark_agent import contract
from spark_agent.delivery.database_names import without_secrets
from spark_agent.delivery.settings import AgentSettings
from spark_agent.delivery.tracebacks import innermost_line, is_of_spark
from spark_agent.driver import outcome

MAX_TYPE_CHARACTERS = 200
MAX_MESSAGE_CHARACTERS = 1_000
MAX_FRAME_CHARACTERS = 1_000

#: type, message, frame: as `error` of events.
Error = dict[str, Any]

#: What Python says of an uncaught error, in the text of another one: Spark hands on so what its workers say.
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'^\s+File "(?P<file>[^"]+)", line (?P<line>\d+)')
_ERROR = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$")
#: The first line of py4j's errors names the call; the error of the JVM follows.
_PY4J = re.compile(r"^An error occurred while calling .*?\.?\n: (?P<error>.*)", re.DOTALL)


def of_exception(error: BaseException, settings: AgentSettings, name: str = "") -> Error:
    """The error as events have it; `name` is the operation that it belongs to, for the redaction function."""
    if isinstance(error, SystemExit):
        message = f"exit code {error.code}" if isinstance(error.code, int) else str(error.code)
        fields: Error = {"type": "SystemExit", "message": message, "frame": outcome.exit_caller()}
    else:
        try:
            fields = of_text(f"{type(error).__name__}: {error}")
        except Exception:  # noqa: BLE001 - an error that cannot say what it is, or a JVM that has gone
            fields = {"type": type(error).__name__, "message": "", "frame": None}
    fields["frame"] = fields["frame"] or innermost_line(error.__traceback__)
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


def is_of_worker(message: str) -> bool:
    """Does it hand on an error that a Python worker has raised?"""
    return _of_worker(message) is not None


def _of_worker(message: str) -> Error | None:
    _, mark, report = message.rpartition(_TRACEBACK)
    frame = None
    for line in report.splitlines()[1:] if mark else ():
        if (place := _FRAME.match(line)) is not None:
            if not is_of_spark(place["file"]):
                frame = f"{place['file']}:{place['line']}"
        elif (error := _ERROR.match(line)) is not None:
            kind = error["type"].rpartition(".")[2]
            return {"type": kind, "message": (error["message"] or "").strip(), "frame": frame}
    return None


def _bounded(error: Error, settings: AgentSettings, name: str) -> Error:
    message = _redacted(without_secrets(error["message"]), settings.redact, name)
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

"""What an error of a program says in an event: its type, its message, and the line of the program.

Promises that nothing is raised, and that no password of a database's address is in a message.
"""

from __future__ import annotations

from spark_agent import contract
from spark_agent.delivery.database_names import without_secrets
from spark_agent.delivery.tracebacks import innermost_line

MAX_TYPE_CHARACTERS = 200
MAX_FRAME_CHARACTERS = 1_000
#: The message of the error that has ended an application: its first line, so long at most.
MAX_END_CHARACTERS = 1_000


def message_of(error: BaseException) -> str:
    try:
        message = without_secrets(str(error))
    except Exception:  # noqa: BLE001 - a class of the program's may raise anything
        return ""
    return contract.typed_text(message)[1]


def frame_of(error: BaseException) -> str | None:
    """FILE:LINE of the innermost line of the program that the error has passed."""
    frame = innermost_line(error.__traceback__)
    return None if frame is None else frame[-MAX_FRAME_CHARACTERS:]


def end_of(error: BaseException) -> dict[str, str | None]:
    """`error` of the end of an application."""
    message = message_of(error).partition("\n")[0]
    if len(message) > MAX_END_CHARACTERS:
        message = message[: MAX_END_CHARACTERS - 1] + "…"
    return {
        "type": type(error).__name__[:MAX_TYPE_CHARACTERS],
        "message": message,
        "frame": frame_of(error),
    }

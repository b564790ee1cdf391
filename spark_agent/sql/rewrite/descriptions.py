"""Expressions of a plan as people write them, made of the text that Spark shows of an operator.

Pure. What it does not know stays as Spark says it. For people only: nothing reads these texts again.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_EXPRESSION_IDS = re.compile(r"#[0-9]+L?")
_AT_LEAST = "atleastnnonnulls"
#: Functions that say nothing to people about the values that they are given.
_SILENT = ("knownfloatingpointnormalized", "normalizenanandzero", "promote_precision", "checkoverflow")


def described(text: str, name: str) -> str:
    """What an operator called `name` does, of all that Spark shows of it."""
    return _outer(readable(_EXPRESSION_IDS.sub("", text).removeprefix(name).strip()))


def readable(text: str) -> str:
    for name in _SILENT:
        text = _rewritten(text, name, lambda arguments: arguments[0])
    text = _rewritten(text, "isnotnull", lambda arguments: f"{', '.join(arguments)} IS NOT NULL")
    text = _rewritten(text, "isnull", lambda arguments: f"{', '.join(arguments)} IS NULL")
    return _rewritten(text, _AT_LEAST, _at_least)


def _at_least(arguments: list[str]) -> str:
    least, *values = arguments
    if least == str(len(values)):
        return " AND ".join(f"{value} IS NOT NULL" for value in values)
    return f"at least {least} of ({', '.join(values)}) IS NOT NULL"


def _rewritten(text: str, name: str, write: Callable[[list[str]], str]) -> str:
    """With each whole call of a function as `write` writes it of its arguments."""
    call = re.compile(rf"\b{name}\(")
    start_at = 0
    while (match := call.search(text, start_at)) is not None:
        arguments, end = _arguments(text, match.end())
        if not arguments:  # Spark has cut it
            start_at = match.end()
            continue
        text = text[: match.start()] + write(arguments) + text[end:]
        start_at = match.start()
    return text


def _arguments(text: str, start: int) -> tuple[list[str], int]:
    """The arguments of a call whose bracket opened before `start`, and where it ends; none if it does not."""
    arguments, depth, begin = [], 0, start
    for at in range(start, len(text)):
        character = text[at]
        if character == ")" and depth == 0:
            arguments.append(text[begin:at].strip())
            return arguments, at + 1
        if character == "," and depth == 0:
            arguments.append(text[begin:at].strip())
            begin = at + 1
        depth += (character in "([") - (character in ")]")
    return [], start


def _outer(text: str) -> str:
    """Without a bracket around all of it."""
    while text.startswith("(") and _arguments(text, 1)[1] == len(text):
        text = text[1:-1]
    return text

"""The one error of conditions: what is wrong, and a caret under the place."""

from __future__ import annotations

import unicodedata

from lineage_service.errors import InvalidQueryError

__all__ = ["ConditionError"]

#: Characters of a long condition that are shown before and behind the place.
_BEFORE, _BEHIND = 40, 40


class ConditionError(InvalidQueryError):
    """A condition cannot be understood, or not be asked of these columns. `at` counts characters from 0."""

    def __init__(self, message: str, condition: str, at: int) -> None:
        self.at = max(0, min(at, len(condition)))
        super().__init__(f"{message}\n{_marked(condition, self.at)}")
        self.message = message


def _marked(condition: str, at: int) -> str:
    """The condition, or what is near the place, with a caret below."""
    first, last = max(0, at - _BEFORE), min(len(condition), at + _BEHIND)
    shown = "".join(map(_visible, condition[first:last]))
    start, end = "…" if first else "", "…" if last < len(condition) else ""
    indent = sum(_width(character) for character in start + shown[: at - first])
    return f"    {start}{shown}{end}\n    {' ' * indent}^"


def _visible(character: str) -> str:
    is_shown = character.isprintable() and not "\ud800" <= character <= "\udfff"
    return character if is_shown else " "


def _width(character: str) -> int:
    """In columns of a terminal."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1

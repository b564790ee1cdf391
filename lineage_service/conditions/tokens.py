"""The words of a condition: names, texts, numbers and signs. Pure.

Whatever else stands in a text is an error at its place: no character passes unread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

from lineage_service.conditions.errors import ConditionError

__all__ = ["MOST_CHARACTERS", "Kind", "Token", "tokens_of"]

#: Of a condition.
MOST_CHARACTERS = 4096
#: Of a number, and the largest power of ten in it.
_MOST_DIGITS, _MOST_POWER = 100, 400

_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
  | (?P<word>[^\W\d]\w*)
  | (?P<text>'(?:[^']|'')*')
  | (?P<quoted>"(?:[^"]|"")+"|`(?:[^`]|``)+`)
  | (?P<sign><=|>=|<>|!=|==|[=<>(),.+-])
    """,
    re.VERBOSE | re.UNICODE,
)


class Kind(Enum):
    WORD = "a word"
    NAME = "a quoted name"
    TEXT = "a text"
    NUMBER = "a number"
    SIGN = "a sign"
    END = "the end"


@dataclass(frozen=True, slots=True)
class Token:
    """`text` is what it says: of a text and of a quoted name without their quotes."""

    kind: Kind
    text: str
    at: int
    number: Decimal = Decimal(0)

    def is_word(self, *words: str) -> bool:
        return self.kind is Kind.WORD and self.text.lower() in words

    def is_sign(self, *signs: str) -> bool:
        return self.kind is Kind.SIGN and self.text in signs


def tokens_of(condition: str) -> list[Token]:
    """All of them, an end behind the last. Raises ConditionError."""
    if len(condition) > MOST_CHARACTERS:
        raise ConditionError(
            f"the condition has {len(condition):,} characters, of at most {MOST_CHARACTERS:,}",
            condition,
            MOST_CHARACTERS,
        )
    return [*_read(condition), Token(Kind.END, "", len(condition))]


def _read(condition: str) -> Iterator[Token]:
    at = 0
    while at < len(condition):
        match = _TOKEN.match(condition, at)
        if match is None:
            raise ConditionError(_about(condition, at), condition, at)
        text, end = match.group(), match.end()
        if match.lastgroup == "number":
            yield Token(Kind.NUMBER, text, at, _number(condition, text, at, end))
        elif match.lastgroup == "word":
            yield Token(Kind.WORD, text, at)
        elif match.lastgroup in ("text", "quoted"):
            kind = Kind.TEXT if match.lastgroup == "text" else Kind.NAME
            yield Token(kind, _without_quotes(condition, text, at), at)
        elif match.lastgroup == "sign":
            yield Token(Kind.SIGN, text, at)
        at = end


def _about(condition: str, at: int) -> str:
    """Why nothing can be read there."""
    character = condition[at]
    if character in "'\"`":
        what = "text" if character == "'" else "name"
        if condition[at + 1 : at + 2] == character:
            return "a name is empty"
        return f"the {what} that begins here has no end: a quote {character} is missing"
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    hint = "; != means not equal" if character == "!" else ""
    return f"{shown} has no meaning in a condition{hint}"


def _number(condition: str, text: str, at: int, end: int) -> Decimal:
    if end < len(condition) and (condition[end].isalnum() or condition[end] == "_"):
        raise ConditionError(
            "this is no number: quote names that begin with a digit (\"2013\"), and texts ('2013a')",
            condition,
            at,
        )
    _, _, power = text.lower().partition("e")
    is_huge = len(text) > _MOST_DIGITS or abs(int(power or "0")) > _MOST_POWER
    if is_huge:
        raise ConditionError(
            f"the number has more than {_MOST_DIGITS} digits, or a power of ten above {_MOST_POWER}",
            condition,
            at,
        )
    return Decimal(text)


def _without_quotes(condition: str, text: str, at: int) -> str:
    wrong = next((place for place, one in enumerate(text) if "\ud800" <= one <= "\udfff"), None)
    if wrong is not None:
        raise ConditionError("this is no text of Unicode characters", condition, at + wrong)
    return text[1:-1].replace(text[0] * 2, text[0])

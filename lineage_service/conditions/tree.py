"""A condition as a tree, and its text again: parsing that gives an equal tree. Pure.

Places count characters of the text from 0. They make no difference between trees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal

__all__ = [
    "KEYWORDS",
    "And",
    "Between",
    "Column",
    "Comparison",
    "Condition",
    "In",
    "IsNull",
    "Like",
    "Literal",
    "Not",
    "Or",
    "Value",
    "columns_of",
    "conjuncts_of",
    "text_of",
]

#: Words that are no names of columns unless they are quoted.
KEYWORDS = frozenset(
    ("and", "or", "not", "in", "like", "ilike", "between", "is", "null", "true", "false", "escape")
)
_PLAIN = re.compile(r"[^\W\d]\w*", re.UNICODE)

Value = Decimal | str | bool | date | datetime


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a field within one: `a.b` has two parts."""

    parts: tuple[str, ...]
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that the condition states. Times with a zone are in UTC."""

    value: Value
    at: int = field(default=0, compare=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        return type(self.value) is type(other.value) and _stated(self.value) == _stated(other.value)

    def __hash__(self) -> int:
        return hash((type(self.value), _stated(self.value)))


@dataclass(frozen=True, slots=True)
class Comparison:
    """`operator` is one of = != < <= > >=. At least one side is a column."""

    operator: str
    left: Column | Literal
    right: Column | Literal
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class In:
    column: Column
    values: tuple[Literal, ...]
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Like:
    r"""`%` stands for any text, `_` for any character, and `\` before one of them for itself."""

    column: Column
    pattern: str
    ignores_case: bool = False
    is_negated: bool = False
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Between:
    column: Column
    low: Literal
    high: Literal
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class IsNull:
    column: Column
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: Condition


Condition = Comparison | In | Like | Between | IsNull | And | Or | Not


def columns_of(condition: Condition) -> Iterator[Column]:
    """All that it names, in their order."""
    match condition:
        case And(parts) | Or(parts):
            for part in parts:
                yield from columns_of(part)
        case Not(part):
            yield from columns_of(part)
        case Comparison(_, left, right):
            yield from (side for side in (left, right) if isinstance(side, Column))
        case In(column) | Like(column) | Between(column) | IsNull(column):
            yield column


def conjuncts_of(condition: Condition) -> tuple[Condition, ...]:
    """Conditions that hold together where the whole one does."""
    return condition.parts if isinstance(condition, And) else (condition,)


def text_of(condition: Condition) -> str:
    """The condition as it can be written."""
    match condition:
        case And(parts):
            return " and ".join(map(_part, parts))
        case Or(parts):
            return " or ".join(map(_part, parts))
        case Not(part):
            return f"not {_part(part)}"
        case Comparison(operator, left, right):
            return f"{_operand(left)} {operator} {_operand(right)}"
        case In(column, values, is_negated):
            listed = ", ".join(map(_operand, values))
            return f"{_operand(column)} {_not(is_negated)}in ({listed})"
        case Like(column, pattern, ignores_case, is_negated):
            word = "ilike" if ignores_case else "like"
            return f"{_operand(column)} {_not(is_negated)}{word} {_quoted(pattern)}"
        case Between(column, low, high, is_negated):
            return f"{_operand(column)} {_not(is_negated)}between {_operand(low)} and {_operand(high)}"
        case IsNull(column, is_negated):
            return f"{_operand(column)} is {_not(is_negated)}null"


def _part(part: Condition) -> str:
    return f"({text_of(part)})" if isinstance(part, And | Or) else text_of(part)


def _not(is_negated: bool) -> str:
    return "not " if is_negated else ""


def _operand(operand: Column | Literal) -> str:
    if isinstance(operand, Column):
        return ".".join(map(_name, operand.parts))
    value = operand.value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, str):
        return _quoted(value)
    word = "timestamp" if isinstance(value, datetime) else "date"
    return f"{word} '{value.isoformat(*(' ',) if isinstance(value, datetime) else ())}'"


def _name(name: str) -> str:
    is_plain = _PLAIN.fullmatch(name) is not None and name.lower() not in KEYWORDS
    return name if is_plain else '"' + name.replace('"', '""') + '"'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _stated(value: Value) -> object:
    """Times with and without a zone are never the same, and compare as such."""
    return (value.tzinfo is None, value.isoformat()) if isinstance(value, datetime) else value

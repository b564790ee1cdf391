"""Reads a condition. Nothing else can be said: no functions, no queries, no files. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone

from lineage_service.conditions.errors import ConditionError
from lineage_service.conditions.tokens import Kind, Token, tokens_of
from lineage_service.conditions.tree import (
    KEYWORDS,
    And,
    Between,
    Column,
    Comparison,
    Condition,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
)

__all__ = ["parse", "parsed_date", "parsed_timestamp"]

#: Parentheses and `not` within each other.
_MOST_DEEP = 50
_OPERATORS = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIMESTAMP = re.compile(
    rf"{_DATE.pattern}"
    r"(?:[ T]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.]([0-9]{1,6}))?)?"
    r"(?:[ ]?(Z|z|UTC|([+-])([0-9]{2})(?::?([0-9]{2}))?))?)?"
)


def parse(condition: str) -> Condition:
    """Raises ConditionError."""
    parser = _Parser(condition)
    tree = parser.either()
    parser.end()
    return tree


def parsed_date(text: str) -> date | None:
    """`2013-02-28`; None for anything else."""
    match = _DATE.fullmatch(text)
    try:
        return date(*map(int, match.groups())) if match is not None else None
    except ValueError:
        return None


def parsed_timestamp(text: str) -> datetime | None:
    """A date with a time or none, as in ISO 8601. With a zone it is given in UTC; None for anything else."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    *whole, fraction, zone, sign, hours, minutes = match.groups()
    year, month, day, hour, minute, second = (int(part or 0) for part in whole)
    try:
        time = datetime(year, month, day, hour, minute, second, int((fraction or "").ljust(6, "0")))
        if zone is None:
            return time
        shift = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
        return (time + shift if sign == "-" else time - shift).replace(tzinfo=timezone.utc)
    except (ValueError, OverflowError):
        return None


class _Parser:
    """Reads from left to right; each method reads what it is named after."""

    def __init__(self, condition: str) -> None:
        self._condition = condition
        self._tokens = tokens_of(condition)
        self._next = 0
        self._deep = 0

    # -- conditions ---------------------------------------------------------------------------------

    def either(self) -> Condition:
        return self._several("or", self._both, Or)

    def _both(self) -> Condition:
        return self._several("and", self._negated, And)

    def _several(
        self, word: str, read: Callable[[], Condition], join: Callable[[tuple[Condition, ...]], Condition]
    ) -> Condition:
        parts = [read()]
        while self._token.is_word(word):
            self._take()
            parts.append(read())
        return parts[0] if len(parts) == 1 else join(tuple(parts))

    def _negated(self) -> Condition:
        token = self._token
        if not (token.is_word("not") or token.is_sign("(")):
            return self._predicate()
        self._deep += 1
        if self._deep > _MOST_DEEP:
            raise self._error(f"parentheses and not stand more than {_MOST_DEEP} deep", token)
        self._take()
        if token.is_sign("("):
            condition = self.either()
            self._expect(")", "a closing parenthesis is missing")
        else:
            condition = Not(self._negated())
        self._deep -= 1
        return condition

    def _predicate(self) -> Condition:
        start = self._token
        left, token = self._operand(), self._token
        if token.is_sign(*_OPERATORS):
            self._take()
            return self._comparison(left, token)
        if token.is_word("in", "like", "ilike", "between", "not", "is"):
            if not isinstance(left, Column):
                raise self._error("a column is missing: its name stands before the operator", start)
            return self._about_column(left)
        if token.is_sign("(") and isinstance(left, Column):
            raise self._error("functions cannot be used in a condition", start)
        raise self._error(
            "a comparison is missing behind the column: =, !=, <, <=, >, >=, in, like, between or is null",
            token,
        )

    def _comparison(self, left: Column | Literal, operator: Token) -> Condition:
        right = self._operand()
        if isinstance(left, Literal) and isinstance(right, Literal):
            raise self._error("a column is missing: two values are compared", operator)
        return Comparison(_OPERATORS[operator.text], left, right, operator.at)

    def _about_column(self, column: Column) -> Condition:
        token = self._take()
        if token.is_word("is"):
            is_negated = self._has_not()
            if not self._token.is_word("null"):
                raise self._error("null or not null is missing behind is", self._token)
            self._take()
            return IsNull(column, is_negated)
        is_negated = token.is_word("not")
        if is_negated:
            token = self._take()
        if token.is_word("in"):
            return In(column, self._list(), is_negated)
        if token.is_word("like", "ilike"):
            return self._like(column, token, is_negated=is_negated)
        if token.is_word("between"):
            low = self._literal()
            if not self._token.is_word("and"):
                raise self._error("and is missing: between LOW and HIGH", self._token)
            self._take()
            return Between(column, low, self._literal(), is_negated)
        raise self._error("in, like, ilike or between is missing behind not", token)

    def _like(self, column: Column, word: Token, *, is_negated: bool) -> Condition:
        token = self._take()
        if token.kind is not Kind.TEXT:
            raise self._error("a pattern is missing: like 'EW%'", token)
        if len(token.text) - len(token.text.rstrip("\\")) & 1:
            raise self._error("the pattern ends with \\, which has to stand before a character", token)
        return Like(column, token.text, word.is_word("ilike"), is_negated, token.at)

    def _list(self) -> tuple[Literal, ...]:
        self._expect("(", "a list is missing: in ('EWR', 'JFK')")
        values = [self._literal()]
        while self._token.is_sign(","):
            self._take()
            values.append(self._literal())
        self._expect(")", "the list goes on with a comma, or ends with a parenthesis")
        return tuple(values)

    # -- operands -----------------------------------------------------------------------------------

    def _literal(self) -> Literal:
        start = self._token
        operand = self._operand()
        if isinstance(operand, Column):
            raise self._error(
                "a value is missing: a number, a 'text', true or false, or date '2013-02-28'", start
            )
        return operand

    def _operand(self) -> Column | Literal:
        token = self._take()
        if token.is_word("null"):
            raise self._error("nothing compares with null: write is null, or is not null", token)
        if token.is_word("true", "false"):
            return Literal(token.is_word("true"), token.at)
        if token.is_word("date", "timestamp") and self._token.kind is Kind.TEXT:
            return self._time(token)
        if token.kind is Kind.NAME or (token.kind is Kind.WORD and token.text.lower() not in KEYWORDS):
            return self._column(token)
        if token.kind is Kind.TEXT:
            return Literal(token.text, token.at)
        if token.is_sign("+", "-") and self._token.kind is Kind.NUMBER:
            number = self._take().number
            return Literal(number.copy_negate() if token.text == "-" else number, token.at)
        if token.kind is Kind.NUMBER:
            return Literal(token.number, token.at)
        what = "the condition ends" if token.kind is Kind.END else f"{token.text} stands"
        raise self._error(f"a column or a value is missing: {what} here", token)

    def _column(self, first: Token) -> Column:
        parts = [first.text]
        while self._token.is_sign("."):
            self._take()
            token = self._take()
            if token.kind not in (Kind.WORD, Kind.NAME):
                raise self._error("a name is missing behind the point", token)
            parts.append(token.text)
        return Column(tuple(parts), first.at)

    def _time(self, word: Token) -> Literal:
        token = self._take()
        is_date = word.is_word("date")
        value = parsed_date(token.text) if is_date else parsed_timestamp(token.text)
        if value is None:
            example = "2013-02-28" if is_date else "2013-02-28 13:00:00+01:00"
            raise self._error(f"this is no {word.text.lower()}: write '{example}'", token)
        return Literal(value, word.at)

    # -- tokens -------------------------------------------------------------------------------------

    def end(self) -> None:
        """Raises ConditionError where anything is left."""
        token = self._token
        if token.kind is Kind.END:
            return
        if token.is_sign(")"):
            raise self._error("this parenthesis was never opened", token)
        raise self._error("the condition has ended here: and or or is missing", token)

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _has_not(self) -> bool:
        has_not = self._token.is_word("not")
        if has_not:
            self._take()
        return has_not

    def _expect(self, sign: str, message: str) -> None:
        if not self._token.is_sign(sign):
            raise self._error(message, self._token)
        self._take()

    def _error(self, message: str, token: Token) -> ConditionError:
        return ConditionError(message, self._condition, token.at)

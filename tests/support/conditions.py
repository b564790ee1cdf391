"""Random conditions, and what they say of a row in plain Python: a second, stupid way."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from lineage_service.conditions.tree import (
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

__all__ = ["NAMES", "conditions", "holds", "literals"]

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
#: Characters that mean something in SQL, in Python, in JSON paths, or in a terminal.
NAMES = st.text(st.sampled_from("aB_ 9\"'`.;-/*é名\n\\$?%{}"), min_size=1, max_size=6)
TEXTS = st.text(st.characters(blacklist_categories=("Cs",)), max_size=8)

_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def literals() -> st.SearchStrategy[Literal]:
    numbers = st.decimals(
        allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9
    )
    return st.builds(
        Literal,
        st.one_of(
            numbers,
            st.integers(-(10**40), 10**40).map(Decimal),
            TEXTS,
            st.booleans(),
            st.dates(),
            st.datetimes(timezones=st.one_of(st.none(), st.just(timezone.utc))),
        ),
    )


def conditions(
    columns: st.SearchStrategy[Column], values: st.SearchStrategy[Literal]
) -> st.SearchStrategy[Condition]:
    """Of a few levels."""
    lists = st.lists(values, min_size=1, max_size=3).map(tuple)
    patterns = st.text(st.sampled_from("ab%_x"), max_size=5)
    simple = st.one_of(
        st.builds(Comparison, st.sampled_from(OPERATORS), columns, values),
        st.builds(Comparison, st.sampled_from(OPERATORS), values, columns),
        st.builds(In, columns, lists, st.booleans()),
        st.builds(Between, columns, values, values, st.booleans()),
        st.builds(Like, columns, patterns, st.booleans(), st.booleans()),
        st.builds(IsNull, columns, st.booleans()),
    )

    def joined(parts: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
        several = st.lists(parts, min_size=2, max_size=3).map(tuple)
        return st.one_of(st.builds(And, several), st.builds(Or, several), st.builds(Not, parts))

    return st.recursive(simple, joined, max_leaves=5)


def holds(condition: Condition, row: Mapping[str, Any]) -> bool | None:
    """By SQL's three values; the values of `row` are of the types of its columns. None is null.

    Numbers are int, Decimal or float; a float is compared with the float that a literal is.
    """
    match condition:
        case And(parts):
            truths = [holds(part, row) for part in parts]
            return False if False in truths else None if None in truths else True
        case Or(parts):
            truths = [holds(part, row) for part in parts]
            return True if True in truths else None if None in truths else False
        case Not(part):
            return _negated(holds(part, row))
        case IsNull(column, is_negated):
            return (_value(column, row) is None) != is_negated
        case Comparison(operator, left, right):
            if isinstance(left, Literal):
                assert isinstance(right, Column)
                left, right, operator = right, left, _MIRRORED[operator]
            other = right.value if isinstance(right, Literal) else _value(right, row)
            return _compared(operator, _value(left, row), other)
        case In(column, values, is_negated):
            truth = holds(Or(tuple(Comparison("=", column, value) for value in values)), row)
        case Between(column, low, high, is_negated):
            truth = holds(And((Comparison(">=", column, low), Comparison("<=", column, high))), row)
        case Like(column, pattern, ignores_case, is_negated):
            value = _value(column, row)
            if value is None:
                return None
            expression = "".join(_as_regex(piece) for piece in re.findall(r"\\.|.", pattern, re.DOTALL))
            flags = re.DOTALL | (re.IGNORECASE if ignores_case else 0)
            truth = re.fullmatch(expression, value, flags) is not None
    return _negated(truth) if is_negated else truth


def _as_regex(piece: str) -> str:
    if len(piece) == 2:
        return re.escape(piece[1])
    return {"%": ".*", "_": "."}.get(piece, re.escape(piece))


def _negated(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _value(column: Column, row: Mapping[str, Any]) -> Any:
    value: Any = row
    for part in column.parts:
        value = None if value is None else value[part]
    return value


def _compared(operator: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    if isinstance(left, float) and isinstance(right, Decimal):
        right = float(right)
        if math.isnan(left):  # greater than all
            return operator in ("!=", ">", ">=")
    if isinstance(left, date) or isinstance(right, date):
        left, right = _instant(left), _instant(right)
    return _COMPARE[operator](left, right)


def _instant(value: Any) -> datetime:
    """Without a zone it is UTC."""
    instant = value if isinstance(value, datetime) else datetime.combine(value, time())
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=timezone.utc)

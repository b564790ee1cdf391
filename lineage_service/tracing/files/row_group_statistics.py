"""Which files and row groups of Parquet can hold a row that fulfils a condition, by their statistics.

Only comparisons that must hold as a whole are looked at, and only where the value is one of the column's
type: what is not sure is not ruled out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

from lineage_service.conditions.column_types import ColumnType, of_arrow
from lineage_service.conditions.columns import columnar
from lineage_service.conditions.tree import (
    Between,
    Column,
    Comparison,
    Condition,
    In,
    Literal,
    Value,
    conjuncts_of,
)

__all__ = ["may_hold", "row_groups_with"]

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def row_groups_with(condition: Condition, file: Any, schema: pa.Schema) -> set[int] | None:
    """The numbers of those that may; None: all. `file` is pyarrow's, of a file with that schema."""
    types = {field.name: of_arrow(field.type) for field in schema}
    expressions = list(_expressions(condition, types))
    if not expressions:
        return None
    every = expressions[0]
    for expression in expressions[1:]:
        every &= expression
    try:
        fragment = pyarrow.dataset.ParquetFileFormat().make_fragment(file)
        return {group.id for group in fragment.subset(every, schema=schema).row_groups}
    except (pa.ArrowException, ValueError, TypeError):
        return None  # statistics that cannot be used rule nothing out


def may_hold(
    condition: Condition,
    types: Mapping[str, ColumnType],
    lows: Mapping[str, Any],
    highs: Mapping[str, Any],
) -> bool:
    """False where these bounds of columns rule out that any row of a file fulfils the condition."""
    for operator, name, values in _sure_comparisons(condition, types):
        low, high = lows.get(name), highs.get(name)
        try:
            if not any(_may_be(operator, value, low, high) for value in values):
                return False
        except TypeError:
            continue  # bounds that are not of the column's type rule nothing out
    return True


def _may_be(operator: str, value: Any, low: Any, high: Any) -> bool:
    """Can a value between two bounds be compared so with this one?"""
    is_below = high is not None and (high < value or (operator == ">" and high == value))
    is_above = low is not None and (low > value or (operator == "<" and low == value))
    if operator in (">", ">="):
        return not is_below
    return not is_above if operator in ("<", "<=") else not (is_below or is_above)


def _expressions(condition: Condition, types: dict[str, ColumnType]) -> Iterator[Any]:
    for operator, name, values in _sure_comparisons(condition, types):
        field = pc.field(name)
        yield field.isin(values) if operator == "in" else _compared(field, operator, values[0])


def _sure_comparisons(
    condition: Condition, types: Mapping[str, ColumnType]
) -> Iterator[tuple[str, str, list[Any]]]:
    """(operator, column, values) of the comparisons that must hold, of values of the column's type."""
    columns = columnar(types)
    for part in conjuncts_of(condition):
        for operator, column, values in _comparisons(part):
            names = columns.names_of(column)
            if names is None or len(names) != 1 or operator == "!=":
                continue
            plain = [_plain(value, types[names[0]]) for value in values]
            if any(value is None for value in plain):
                continue
            if types[names[0]].sql == "DOUBLE" and operator in (">", ">="):
                continue  # NaN is greater than all, and statistics leave it out
            yield operator, names[0], plain


def _comparisons(part: Condition) -> Iterator[tuple[str, Column, tuple[Value, ...]]]:
    match part:
        case Comparison(operator, Column() as column, Literal(value)):
            yield operator, column, (value,)
        case Comparison(operator, Literal(value), Column() as column):
            yield _MIRRORED.get(operator, operator), column, (value,)
        case In(column, values, False):
            yield "in", column, tuple(value.value for value in values)
        case Between(column, low, high, False):
            yield ">=", column, (low.value,)
            yield "<=", column, (high.value,)


def _compared(field: Any, operator: str, value: object) -> Any:
    match operator:
        case "=":
            return field == value
        case "<":
            return field < value
        case "<=":
            return field <= value
        case ">":
            return field > value
    return field >= value


def _plain(value: Value, type: ColumnType) -> object | None:
    """As Arrow has it in a column of this type; None where it is not exactly one."""
    if isinstance(value, bool):
        return None
    if type.bounds is not None and isinstance(value, Decimal):
        is_whole = value == value.to_integral_value() and abs(value) < Decimal(2) ** 63
        return int(value) if is_whole and type.bounds[0] <= value <= type.bounds[1] else None
    if type.sql == "DOUBLE" and isinstance(value, Decimal):
        return float(value)
    if type.kind == "text" and isinstance(value, str):
        return value
    if type.kind == "date" and isinstance(value, str) and _DAY.fullmatch(value):
        return _day(value)
    if type.kind == "date" and isinstance(value, date) and not isinstance(value, datetime):
        return value
    return None


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None

"""A condition on known columns as what DuckDB evaluates: quoted columns and parameters, and nothing else.

Conditions have three values, as in SQL: what compares with null is neither true nor false.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from lineage_service.conditions.column_types import ColumnType
from lineage_service.conditions.columns import Columns, Operand
from lineage_service.conditions.comparisons import IncomparableError, compared, compared_columns, mirrored
from lineage_service.conditions.errors import ConditionError
from lineage_service.conditions.parser import parse
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

__all__ = ["Filter", "Where"]

_TRUTH = ColumnType("boolean", "boolean", "BOOLEAN")


@dataclass(frozen=True, slots=True)
class Filter:
    """A truth value in SQL, and its parameters in their order."""

    sql: str
    parameters: tuple[object, ...]


class Where:
    """A condition that was read. Raises ConditionError where it is made, and where it is compiled."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = parse(text)

    def on(self, columns: Columns, part: Condition | None = None) -> Filter:
        """The condition, or a part of it, on these columns."""
        truth = self._truth(self.tree if part is None else part, columns)
        return Filter(truth.sql, truth.parameters)

    def _truth(self, condition: Condition, columns: Columns) -> Operand:
        match condition:
            case And(parts):
                return _joined("AND", [self._truth(part, columns) for part in parts])
            case Or(parts):
                return _joined("OR", [self._truth(part, columns) for part in parts])
            case Not(part):
                return _negated(self._truth(part, columns))
            case IsNull(column, is_negated):
                operand = columns.operand_of(column, self.text)
                return replace(operand, sql=f"({operand.sql} IS {'NOT ' * is_negated}NULL)", type=_TRUTH)
            case Like():
                return self._like(condition, columns)
            case In(column, values, is_negated):
                truth = self._in(column, values, columns)
            case Between(column, low, high, is_negated):
                ends = (
                    self._compared(column, ">=", low, columns),
                    self._compared(column, "<=", high, columns),
                )
                truth = _joined("AND", ends)
            case Comparison(operator, left, right, at):
                return self._comparison(operator, left, right, at, columns)
        return _negated(truth) if is_negated else truth

    def _comparison(
        self, operator: str, left: Column | Literal, right: Column | Literal, at: int, columns: Columns
    ) -> Operand:
        if isinstance(left, Column) and isinstance(right, Literal):
            return self._compared(left, operator, right, columns)
        if isinstance(right, Column) and isinstance(left, Literal):
            return self._compared(right, mirrored(operator), left, columns)
        assert isinstance(left, Column)
        assert isinstance(right, Column)
        sides = columns.operand_of(left, self.text), columns.operand_of(right, self.text)
        try:
            return compared_columns(sides[0], operator, sides[1])
        except IncomparableError as error:
            self._refuse(left, error, at)

    def _compared(self, column: Column, operator: str, value: Literal, columns: Columns) -> Operand:
        operand = columns.operand_of(column, self.text)
        try:
            return compared(operand, operator, value.value)
        except IncomparableError as error:
            self._refuse(column, error, value.at)

    def _in(self, column: Column, values: Sequence[Literal], columns: Columns) -> Operand:
        return _joined("OR", [self._compared(column, "=", value, columns) for value in values])

    def _like(self, like: Like, columns: Columns) -> Operand:
        operand = columns.operand_of(like.column, self.text)
        if operand.type.kind != "text":
            self._refuse(like.column, IncomparableError("is no text, and like compares texts"), like.at)
        word = f"{'NOT ' * like.is_negated}{'ILIKE' if like.ignores_case else 'LIKE'}"
        sql = f"({operand.sql} {word} CAST(? AS VARCHAR) ESCAPE '\\')"
        return Operand(sql, _TRUTH, (*operand.parameters, like.pattern))

    def _refuse(self, column: Column, error: IncomparableError, at: int) -> NoReturn:
        raise ConditionError(f"{'.'.join(column.parts)} {error}", self.text, at) from None


def _negated(truth: Operand) -> Operand:
    return replace(truth, sql=f"(NOT {truth.sql})", type=_TRUTH)


def _joined(word: str, truths: Sequence[Operand]) -> Operand:
    """As a balanced tree: DuckDB bounds how deep expressions are."""
    if len(truths) == 1:
        return truths[0]
    half = len(truths) // 2
    left, right = _joined(word, truths[:half]), _joined(word, truths[half:])
    return Operand(f"({left.sql} {word} {right.sql})", _TRUTH, (*left.parameters, *right.parameters))

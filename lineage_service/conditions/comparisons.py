"""One value against another, exactly: what stands in a query for it, or why the two do not compare.

A number is compared as what the column holds. Where it lies between two values of the column, or beyond
them, the comparison is with the nearest of these: no value is rounded to be equal.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, time, timezone
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from lineage_service.conditions.column_types import ColumnType
from lineage_service.conditions.columns import Operand
from lineage_service.conditions.parser import parsed_timestamp
from lineage_service.conditions.tree import Value

__all__ = ["IncomparableError", "compared", "compared_columns", "mirrored"]

_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EXACT = Context(prec=min(MAX_PREC, 2_000), Emax=MAX_EMAX, Emin=MIN_EMIN)
_HUGE = ColumnType("number", "integer", "HUGEINT")
_DOUBLE = ColumnType("number", "double", "DOUBLE")
#: A text that is an integer of at most 37 digits is compared as such, so that none is rounded.
_IS_INTEGER = "(length({text}) <= 38 AND regexp_full_match({text}, '[+-]?[0-9]+'))"


class IncomparableError(Exception):
    """Why two things do not compare, and what to write."""


def compared(operand: Operand, operator: str, value: Value) -> Operand:
    """`operand OPERATOR value`, a truth value in SQL. Raises IncomparableError."""
    type = operand.type
    if isinstance(value, bool):
        return _with_boolean(operand, operator, value)
    if isinstance(value, Decimal):
        if type.kind == "number":
            return _with_number(operand, operator, value)
        if type.is_loose:
            return _loose_with_number(operand, operator, value)
        hint = f": write '{value}'" if type.kind == "text" else ""
        raise IncomparableError(f"is {_in_words(type)}, and does not compare with a number{hint}")
    if isinstance(value, str) and type.kind not in ("date", "timestamp"):
        return _with_text(operand, operator, value)
    return _with_time(operand, operator, value)


def compared_columns(left: Operand, operator: str, right: Operand) -> Operand:
    """Of two columns. Raises IncomparableError."""
    kinds = {left.type.kind, right.type.kind}
    if left.type.is_loose and right.type.is_loose and operator not in ("=", "!="):
        raise IncomparableError(
            "is a text of a file without types, as is the other: only = and != compare them"
        )
    for one, other in ((left, right), (right, left)):
        if one.type.is_loose and other.type.kind == "number":
            double = Operand(f"TRY_CAST({one.sql} AS DOUBLE)", _DOUBLE, one.parameters)
            pair = (double, other) if one is left else (other, double)
            return _joined(pair[0], operator, pair[1])
    is_of_times = kinds <= {"date", "timestamp"} and left.type.has_zone == right.type.has_zone
    if not (is_of_times or (len(kinds) == 1 and kinds <= {"number", "text", "boolean", "date"})):
        raise IncomparableError(f"is {_in_words(left.type)}, and the other is {_in_words(right.type)}")
    return _joined(left, operator, right)


def _joined(left: Operand, operator: str, right: Operand) -> Operand:
    sql = f"({left.sql} {operator} {right.sql})"
    return Operand(sql, left.type, (*left.parameters, *right.parameters))


def _against(operand: Operand, operator: str, value: object, sql_type: str) -> Operand:
    sql = f"({operand.sql} {operator} CAST(? AS {sql_type}))"
    return Operand(sql, operand.type, (*operand.parameters, value))


def _always(operand: Operand, *, holds: bool) -> Operand:
    """True or false of each value, and null of null."""
    sql = f"({operand.sql} IS NOT NULL OR NULL)" if holds else f"({operand.sql} IS NULL AND NULL)"
    return Operand(sql, operand.type, operand.parameters)


# -- numbers ----------------------------------------------------------------------------------------


def _with_number(operand: Operand, operator: str, value: Decimal) -> Operand:
    type = operand.type
    if type.scale is None:
        return _with_float(operand, operator, float(value))
    digits, scale = type.scale
    least, most = _least_and_most(type, digits, scale)
    low = value.quantize(Decimal(1).scaleb(-scale), ROUND_FLOOR, _EXACT)
    high = value.quantize(Decimal(1).scaleb(-scale), ROUND_CEILING, _EXACT)
    if operator in ("=", "!="):
        if low != high or not least <= low <= most:
            return _always(operand, holds=operator == "!=")
    elif operator in ("<", ">="):  # of what is below `high`, and not
        if high > most or high <= least:
            return _always(operand, holds=(operator == "<") == (high > most))
        low = high
    elif low < least or low >= most:  # of what is above `low`, and not
        return _always(operand, holds=(operator == ">") == (low < least))
    sent = int(low) if type.bounds is not None else f"{low:f}"
    return _against(operand, operator, sent, type.sql)


def _with_float(operand: Operand, operator: str, value: float) -> Operand:
    """NaN is greater than all, as in Spark. Statistics of files leave it out, so that is said here."""
    truth = _against(operand, operator, value, operand.type.sql)
    is_nan = f"isnan({operand.sql})"
    joined = f"OR {is_nan}" if operator in ("!=", ">", ">=") else f"AND NOT {is_nan}"
    return replace(truth, sql=f"({truth.sql} {joined})", parameters=(*truth.parameters, *operand.parameters))


def _least_and_most(type: ColumnType, digits: int, scale: int) -> tuple[Decimal, Decimal]:
    if type.bounds is not None:
        return Decimal(type.bounds[0]), Decimal(type.bounds[1])
    most = Decimal((0, (9,) * digits, -scale))
    return most.copy_negate(), most


def _loose_with_number(operand: Operand, operator: str, value: Decimal) -> Operand:
    """Of a text: as an integer where it is one, else as a float; null of what is no number."""
    integer = _with_number(
        replace(operand, sql=f"CAST({operand.sql} AS {_HUGE.sql})", type=_HUGE), operator, value
    )
    double = replace(operand, sql=f"TRY_CAST({operand.sql} AS DOUBLE)", type=_DOUBLE)
    other = _against(double, operator, float(value), "DOUBLE")
    condition = _IS_INTEGER.format(text=operand.sql)
    return Operand(
        f"CASE WHEN {condition} THEN {integer.sql} ELSE {other.sql} END",
        operand.type,
        (*operand.parameters * 2, *integer.parameters, *other.parameters),
    )


# -- others -----------------------------------------------------------------------------------------


def _with_boolean(operand: Operand, operator: str, value: bool) -> Operand:
    if operand.type.kind == "boolean":
        return _against(operand, operator, value, "BOOLEAN")
    if operand.type.is_loose:
        sql = f"CASE lower({operand.sql}) WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END"
        return _against(replace(operand, sql=sql), operator, value, "BOOLEAN")
    raise IncomparableError(f"is {_in_words(operand.type)}, and does not compare with true or false")


def _with_text(operand: Operand, operator: str, value: str) -> Operand:
    if operand.type.kind == "text":
        return _against(operand, operator, value, "VARCHAR")
    hint = {"number": ": write the number without quotes", "boolean": ": write true or false"}
    raise IncomparableError(
        f"is {_in_words(operand.type)}, and does not compare with a text{hint.get(operand.type.kind, '')}"
    )


def _with_time(operand: Operand, operator: str, value: str | date | datetime) -> Operand:
    """A date is its midnight where it is compared with a time; without a zone a time is of UTC."""
    type = operand.type
    if not (type.is_loose or type.kind in ("date", "timestamp")):
        raise IncomparableError(f"is {_in_words(type)}, and does not compare with a date or a time")
    instant = parsed_timestamp(value) if isinstance(value, str) else _midnight(value)
    if instant is None:
        example = "'2013-02-28'" if type.kind == "date" else "'2013-02-28 13:00:00'"
        raise IncomparableError(f"is {_in_words(type)}, and {value!r} is none: write {example}")
    is_day = instant.tzinfo is None and instant.time() == time()
    if is_day and (type.kind == "date" or (type.is_loose and not isinstance(value, datetime))):
        column = replace(operand, sql=f"TRY_CAST({operand.sql} AS DATE)") if type.is_loose else operand
        return _against(column, operator, instant.date(), "DATE")
    if type.kind == "date":
        if instant.tzinfo is not None:
            raise IncomparableError("is a date, and has no time zone: leave the zone away")
        column = replace(operand, sql=f"CAST({operand.sql} AS TIMESTAMP)")
        return _against(column, operator, instant, "TIMESTAMP")
    if type.kind == "timestamp" and not type.has_zone:  # in Parquet, Spark's times of 96 bits are of UTC
        return _against(operand, operator, instant.replace(tzinfo=None), "TIMESTAMP")
    zone = "TIMESTAMP WITH TIME ZONE"
    column = replace(operand, sql=f"TRY_CAST({operand.sql} AS {zone})") if type.is_loose else operand
    return _against(column, operator, instant.replace(tzinfo=timezone.utc), zone)


def _midnight(value: date | datetime) -> datetime:
    return value if isinstance(value, datetime) else datetime.combine(value, time())


def _in_words(type: ColumnType) -> str:
    article = {"number": "a number", "text": "a text", "boolean": "true or false", "date": "a date"}
    article |= {"timestamp": "a time", "bytes": "bytes", "struct": "a struct"}
    words = article.get(type.kind, "of a type that does not compare")
    return (
        words
        if words.endswith(type.name) or type.kind in ("boolean", "bytes", "text")
        else f"{words} ({type.name})"
    )


def mirrored(operator: str) -> str:
    """The operator with its sides exchanged."""
    return _MIRRORED[operator]

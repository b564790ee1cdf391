"""The value of an expression for one row, as `expressions` of a node says it (docs/contract.md). Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from lineage_service.evaluation.casts import cast
from lineage_service.evaluation.functions import STRICT, like
from lineage_service.evaluation.values import FLOATS, NULL, Result, Unknown, Value, compared, literal, truth

__all__ = ["Columns", "Expression", "conjuncts", "equalities", "evaluated", "is_never_true"]

Expression = Mapping[str, Any]
Columns = Mapping[int, Result]
"""By the ids of columns."""
#: What `_strict` computes with more of the expression than its inputs.
_WITH_MORE = frozenset(("Cast", "Like", "GetStructField"))


def evaluated(expression: Expression, columns: Columns) -> Result:
    if "column" in expression:
        return _column(expression, columns)
    name, inputs = expression.get("of"), expression.get("inputs", ())
    if name is None:
        if "type" in expression:
            return literal(expression["type"], expression.get("value"))
        return _unknown(expression)
    special = _SPECIAL.get(name)
    try:
        if special is not None:
            return special(expression, inputs, columns)
        return _strict(name, expression, [evaluated(part, columns) for part in inputs])
    except (LookupError, TypeError, ValueError, ArithmeticError):  # it means something else
        return Unknown(f"the function `{name}`", "which has other inputs than are known here")


def _column(expression: Expression, columns: Columns) -> Result:
    value = columns.get(expression["column"])
    if isinstance(value, Value) or (value is not None and value.why):
        return value
    name = expression.get("name")
    clause = "whose value is not known here" if value is None else value.clause
    return Unknown(f"the column `{name}`" if name else "a column", clause)


def _unknown(expression: Expression) -> Unknown:
    kind, name = expression.get("unknown", ""), expression.get("name", "")
    if kind == "PythonUDF":
        return Unknown(f"the Python function `{name}`" if name else "a Python function")
    return Unknown(f"the function `{name or kind}`" if name or kind else "an expression")


def conjuncts(condition: Expression) -> list[Expression]:
    """The conditions that it joins by AND."""
    if condition.get("of") != "And":
        return [condition]
    return [part for side in condition.get("inputs", ()) for part in conjuncts(side)]


def equalities(condition: Expression, *names: str) -> Iterator[tuple[Expression, Expression]]:
    """What its conjuncts of these functions say is equal, each pair both ways."""
    for part in conjuncts(condition):
        inputs = part.get("inputs", ())
        if part.get("of") in names and len(inputs) == 2:
            yield inputs[0], inputs[1]
            yield inputs[1], inputs[0]


def is_never_true(condition: Expression, columns: Columns) -> bool:
    """Is it false or null, whatever is not known?"""
    name, inputs = condition.get("of"), condition.get("inputs", ())
    if name == "And":
        return any(is_never_true(part, columns) for part in inputs)
    if name == "Or":
        return all(is_never_true(part, columns) for part in inputs)
    result = evaluated(condition, columns)
    return isinstance(result, Value) and result.data is not True


def _strict(name: str, expression: Expression, values: Sequence[Result]) -> Result:
    if name not in STRICT and name not in _WITH_MORE:
        return Unknown(f"the function `{name}`")
    is_null = any(isinstance(value, Value) and value.data is None for value in values)
    if is_null:
        return Value(expression["type"], None) if name == "Cast" else NULL
    unknown = next((value for value in values if isinstance(value, Unknown)), None)
    if unknown is not None:
        return unknown
    if name == "Cast":
        return cast(_value(values[0]), expression["type"])
    if name == "Like":
        return like(_value(values[0]), _value(values[1]), expression.get("value") or "\\")
    if name == "GetStructField":
        fields = _value(values[0]).data
        field = fields.get(expression.get("name")) if isinstance(fields, dict) else None
        return field or Unknown(f"the field `{expression.get('name')}`")
    return STRICT[name](*values)


def _value(result: Result) -> Value:
    assert isinstance(result, Value)
    return result


def _logical(expression: Expression, inputs: Sequence[Expression], columns: Columns) -> Result:
    """Of AND and OR: one value decides, whatever the others are."""
    deciding = expression["of"] == "Or"
    results = [evaluated(part, columns) for part in inputs]
    if any(isinstance(result, Value) and result.data is deciding for result in results):
        return truth(deciding)
    unknown = next((result for result in results if isinstance(result, Unknown)), None)
    if unknown is not None:
        return unknown
    return truth(None if any(_value(result).data is None for result in results) else not deciding)


def _not(expression: Expression, inputs: Sequence[Expression], columns: Columns) -> Result:
    result = evaluated(inputs[0], columns)
    if isinstance(result, Unknown) or result.data is None:
        return result
    return truth(not result.data)


def _about_null(holds: Callable[[Any], bool]) -> Callable[..., Result]:
    def ask(expression: Expression, inputs: Sequence[Expression], columns: Columns) -> Result:
        result = evaluated(inputs[0], columns)
        return result if isinstance(result, Unknown) else truth(holds(result.data))

    return ask


def _at_least(expression: Expression, inputs: Sequence[Expression], columns: Columns) -> Result:
    """So many of them are neither null nor NaN."""
    least, results = int(expression["value"]), [evaluated(part, columns) for part in inputs]
    values = [result.data for result in results if isinstance(result, Value)]
    sure = sum(not (data is None or _is_nan(data)) for data in values)
    if sure >= least:
        return truth(True)
    unknown = next((result for result in results if isinstance(result, Unknown)), None)
    if unknown is None or sure + len(results) - len(values) < least:
        return truth(False)
    return unknown


def _is_nan(data: Any) -> bool:
    return isinstance(data, float) and math.isnan(data)


def _same(expression: Expression, inputs: Sequence[Expression], columns: Columns) -> Result:
    """EqualNullSafe."""
    one, other = (evaluated(part, columns) for part in inputs)
    if isinstance(one, Unknown) or isinstance(other, Unknown):
        return one if isinstance(one, Unknown) else other
    if one.data is None or other.data is None:
        return truth(one.data is other.data)
    return STRICT["EqualTo"](one, other)


def _in(expression: Expression, inputs: Sequence[Expression], columns: Columns) -> Result:
    value, *others = (evaluated(part, columns) for part in inputs)
    if isinstance(value, Unknown) or value.data is None:
        return value if isinstance(value, Unknown) else truth(None)
    if value.data == 0 and isinstance(value.data, float):
        return Unknown("a zero among other numbers")  # a set tells -0.0 from 0.0
    has_null, unknown = False, None
    for other in others:
        if isinstance(other, Unknown):
            unknown = other
        elif other.data is None:
            has_null = True
        else:
            order = compared(value, other)
            if order == 0:
                return truth(True)
            unknown = Unknown(f"`In` of {value.type}") if order is None else unknown
    return unknown or truth(None if has_null else False)


def _first_known(expression: Expression, inputs: Sequence[Expression], columns: Columns) -> Result:
    """Coalesce."""
    for part in inputs:
        result = evaluated(part, columns)
        if isinstance(result, Unknown) or result.data is not None:
            return result
    return NULL


def _chosen(expression: Expression, inputs: Sequence[Expression], columns: Columns) -> Result:
    """If and CaseWhen: pairs of condition and value, and what is taken otherwise."""
    for at in range(0, len(inputs) - 1, 2):
        condition = evaluated(inputs[at], columns)
        if isinstance(condition, Unknown):
            return condition
        if condition.data is True:
            return evaluated(inputs[at + 1], columns)
    return evaluated(inputs[-1], columns) if len(inputs) % 2 else NULL


def _extreme(expression: Expression, inputs: Sequence[Expression], columns: Columns) -> Result:
    """Greatest and Least: of those that are not null."""
    sign = 1 if expression["of"] == "Greatest" else -1
    extreme = NULL
    for result in (evaluated(part, columns) for part in inputs):
        if isinstance(result, Unknown):
            return result
        if result.data is None:
            continue
        order = 1 if extreme.data is None else compared(result, extreme)
        if order is None or result.type in FLOATS:
            return Unknown(f"`{expression['of']}` of {result.type}")
        extreme = result if order * sign > 0 else extreme
    return extreme


_SPECIAL: Mapping[str, Callable[[Expression, Sequence[Expression], Columns], Result]] = {
    "And": _logical,
    "Or": _logical,
    "Not": _not,
    "IsNull": _about_null(lambda data: data is None),
    "IsNotNull": _about_null(lambda data: data is not None),
    "IsNaN": _about_null(lambda data: _is_nan(data)),
    "AtLeastNNonNulls": _at_least,
    "EqualNullSafe": _same,
    "In": _in,
    "Coalesce": _first_known,
    "Greatest": _extreme,
    "Least": _extreme,
    "If": _chosen,
    "CaseWhen": _chosen,
}

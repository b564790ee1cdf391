from __future__ import annotations

import math
import re
from itertools import product
from typing import Any

import pytest

from lineage_service.evaluation.expressions import Expression, evaluated, is_never_true
from lineage_service.evaluation.functions import like
from lineage_service.evaluation.texts import described
from lineage_service.evaluation.values import Unknown, Value

A, B, C = ({"column": number, "name": name} for number, name in enumerate("abc"))
RAND = {"unknown": "Rand"}
COLUMNS = {0: Value("int", 5), 1: Value("int", None)}


def lit(type: str, value: str | None) -> Expression:
    return {"type": type, "value": value}


def of(name: str, *inputs: Expression, **more: Any) -> Expression:
    return {"of": name, "inputs": list(inputs), **more}


FIVE, TRUE, FALSE = lit("int", "5"), lit("boolean", "true"), lit("boolean", "false")
NULL = lit("boolean", None)


@pytest.mark.parametrize(
    ("expression", "data"),
    [
        (of("EqualTo", A, FIVE), True),
        (of("EqualTo", B, FIVE), None),
        (of("EqualNullSafe", B, lit("int", None)), True),
        (of("EqualNullSafe", B, FIVE), False),
        (of("And", NULL, FALSE), False),
        (of("And", NULL, TRUE), None),
        (of("Or", NULL, TRUE), True),
        (of("Or", NULL, FALSE), None),
        (of("Not", NULL), None),
        (of("And", RAND, FALSE), False),
        (of("Or", RAND, TRUE), True),
        (of("EqualTo", RAND, lit("int", None)), None),
        (of("In", A, lit("int", "4"), FIVE), True),
        (of("In", A, lit("int", "4"), lit("int", None)), None),
        (of("In", A, RAND, FIVE), True),
        (of("EqualTo", lit("double", "NaN"), lit("double", "NaN")), True),
        (of("GreaterThan", lit("double", "NaN"), lit("double", "Infinity")), True),
        (of("EqualTo", lit("double", "0.0"), lit("double", "-0.0")), True),
        (of("EqualTo", of("Cast", lit("float", "0.1"), type="double"), lit("double", "0.1")), False),
        (of("LessThan", lit("string", "\uffff"), lit("string", "\U0001f600")), True),
        (of("EqualTo", lit("decimal(10,2)", "1.10"), lit("decimal(5,1)", "1.1")), True),
        (of("Like", lit("string", "a\nb"), lit("string", "a_b"), value="\\"), True),
        (of("Like", lit("string", "a.b"), lit("string", "a\\_b"), value="\\"), False),
        (of("Remainder", lit("int", "-7"), lit("int", "3")), -1),
        (of("Cast", lit("string", "12"), type="int"), 12),
        (of("If", NULL, TRUE, FALSE), False),
        (of("CaseWhen", FALSE, TRUE), None),
        (of("Coalesce", B, A), 5),
        (of("AtLeastNNonNulls", A, lit("double", "NaN"), value="2"), False),
        (of("IsNaN", lit("double", None)), False),
    ],
)
def test_null_and_nan_are_as_in_spark(expression: Expression, data: Any) -> None:
    result = evaluated(expression, COLUMNS)
    assert isinstance(result, Value), result
    assert result.data == data
    assert isinstance(result.data, bool) == isinstance(data, bool)


@pytest.mark.parametrize(
    "expression",
    [
        C,
        RAND,
        {},
        of("And", RAND, TRUE),
        of("Add", lit("tinyint", "127"), lit("tinyint", "1")),
        of("Divide", lit("double", "1"), lit("double", "0")),
        of("Cast", lit("string", " 12"), type="int"),
        of("Cast", lit("string", "5.5"), type="int"),
        of("Cast", lit("timestamp", "0"), type="date"),
        of("EqualTo", A, lit("bigint", "5")),
        of("Upper", lit("string", "straße")),
        of("LessThan", lit("string collate UTF8_LCASE", "a"), lit("string collate UTF8_LCASE", "B")),
        of("In", lit("double", "-0.0"), lit("double", "0.0")),
        of("Murmur3Hash", A),
        lit("date", "999999999"),
        lit("int", "many"),
    ],
)
def test_what_may_differ_is_not_known(expression: Expression) -> None:
    assert isinstance(evaluated(expression, COLUMNS), Unknown)


def test_a_condition_is_never_true_if_one_part_is_not() -> None:
    assert is_never_true(of("And", RAND, of("GreaterThan", B, FIVE)), COLUMNS)
    assert not is_never_true(of("Or", RAND, FALSE), COLUMNS)


def test_nan_is_no_number_of_its_own() -> None:
    result = evaluated(of("NormalizeNaNAndZero", lit("double", "-0.0")), {})
    assert isinstance(result, Value)
    assert math.copysign(1, result.data) == 1


TEXT = lit("string", "a")


@pytest.mark.parametrize(
    "expression",
    [
        *(of(name) for name in ("Not", "IsNull", "In", "EqualNullSafe", "Like", "EqualTo", "GetStructField")),
        of("EqualTo", TEXT),
        of("Substring", TEXT),
        of("StringTrim", TEXT, TEXT, TEXT),
        of("AtLeastNNonNulls", TEXT),
        of("AtLeastNNonNulls", TEXT, value="x"),
        of("Cast", TEXT),
        of("Cast", type="int"),
        of("LessThan", lit("decimal(3,1)", "NaN"), lit("decimal(3,1)", "1")),
        lit("boolean", "perhaps"),
        of("ConcatWs", lit("string", None), TEXT),  # of a later agent: it need not be null
    ],
)
def test_what_is_sent_in_another_form_is_not_known(expression: Expression) -> None:
    assert isinstance(evaluated(expression, COLUMNS), Unknown)
    assert described(of("Not", expression))


def test_like_is_as_a_search_of_all_ways() -> None:
    texts = ["".join(letters) for size in range(5) for letters in product("ab\n", repeat=size)]
    for size in range(5):
        for letters in product("ab_%", repeat=size):
            pattern = "".join({"%": ".*", "_": "."}.get(letter, letter) for letter in letters)
            for text in texts:
                expected = re.fullmatch(pattern, text, re.DOTALL) is not None
                result = like(Value("string", text), Value("string", "".join(letters)), "\\")
                assert result == Value("boolean", expected), (text, letters)


@pytest.mark.parametrize(
    ("name", "text", "pattern"),
    [
        ("Like", "ab" * 4_000, "%a%b%a%b%a%c%"),
        ("RLike", "a" * 60, "a?" * 60 + "b"),
        ("RLike", "ab" * 400, "[ab]*[ab]*[ab]*c"),
        ("RLike", "a", "[_]" * 60 + "{"),
    ],
)
def test_no_pattern_takes_long(name: str, text: str, pattern: str) -> None:
    """Those that would are not computed again, or in one pass."""
    result = evaluated(of(name, lit("string", text), lit("string", pattern)), {})
    assert isinstance(result, Unknown) or result == Value("boolean", False)

from __future__ import annotations

from typing import Any

from lineage_service.evaluation.steps import Step, Verdict, scan_columns, verdict_of
from lineage_service.evaluation.values import Value

AMOUNT, CUSTOMER, KEY = (
    {"column": n, "name": name} for n, name in ((1, "amount"), (2, "customer"), (9, "key"))
)
COLUMNS, _ = scan_columns(
    {"columns": [[1, 2], [11, 12]]},
    ["amount", "customer"],
    {"amount": Value("int", 3), "customer": Value("string", "bo")},
)


A = Value("int", 3)


def of(name: str, *inputs: Any) -> dict[str, Any]:
    return {"of": name, "inputs": list(inputs)}


def filter_(condition: Any) -> Step:
    return Step("Filter", {"condition": condition})


def join(kind: str, condition: Any, port: int = 0) -> Step:
    return Step("Join", {"join": kind, "condition": condition}, port)


LARGE = filter_(of("GreaterThan", AMOUNT, {"type": "int", "value": "5"}))
SMALL = filter_(of("LessThan", AMOUNT, {"type": "int", "value": "5"}))
CHANCE = filter_({"unknown": "Rand"})
MEETING = of("EqualTo", CUSTOMER, KEY)


def test_a_scan_that_stands_in_a_plan_twice_has_columns_for_each_time() -> None:
    scan = {"columns": [[1, 2], [11, 12]]}
    assert [sorted(columns) for columns in scan_columns(scan, ["a", "b"], {"a": A, "b": A})] == [
        [1, 2],
        [11, 12],
    ]
    assert scan_columns(scan, ["a", "a"], {"a": A}) == [{}, {}]
    assert scan_columns(None, ["a"], {"a": A}) == []


def test_the_rest_of_a_condition_is_not_forgotten() -> None:
    more = of("And", MEETING, of("LessThan", AMOUNT, {"column": 10, "name": "most"}))
    assert verdict_of([join("Inner", more)], COLUMNS).why == (
        "no row of the other side has key = 'bo' and meets the rest of the condition"
    )


def test_a_filter_is_named_with_the_part_that_was_not_true() -> None:
    assert verdict_of([SMALL, LARGE], COLUMNS) == Verdict((1,), "not amount > 5, since amount is 3")


def test_a_join_is_the_one_if_all_filters_let_the_row_pass() -> None:
    verdict = verdict_of([SMALL, Step("Project", {"defined": []}), join("Inner", MEETING)], COLUMNS)
    assert (verdict.candidates, verdict.why) == ((2,), "no row of the other side has key = 'bo'")


def test_a_filter_behind_a_join_may_be_the_one_or_the_join() -> None:
    assert verdict_of([join("Inner", MEETING), LARGE], COLUMNS).candidates == (0, 1)


def test_a_kept_side_of_an_outer_join_is_not_left_out() -> None:
    assert verdict_of([join("LeftOuter", MEETING), LARGE], COLUMNS).candidates == (1,)
    assert verdict_of([join("LeftOuter", MEETING, port=1)], COLUMNS).candidates == (0,)


def test_an_anti_join_says_what_the_row_met_of_its_first_side_only() -> None:
    assert verdict_of([join("LeftAnti", MEETING)], COLUMNS).why == "a row of the other side has key = 'bo'"
    assert verdict_of([join("LeftAnti", MEETING, port=1)], COLUMNS).why == ""


def test_null_meets_nothing() -> None:
    columns = {**COLUMNS, 2: Value("string", None)}
    verdict = verdict_of([join("Inner", MEETING), LARGE], columns)
    assert verdict.candidates == (0,)
    assert "customer is null" in verdict.why


def test_what_cannot_be_computed_is_among_the_candidates() -> None:
    verdict = verdict_of([CHANCE, LARGE], COLUMNS)
    assert verdict.candidates == (0, 1)
    assert "the function `Rand`" in verdict.reason


def test_what_a_function_is_called_is_said() -> None:
    udf = {"defined": [{"column": 30, "as": {"unknown": "PythonUDF", "name": "is_vip"}}]}
    asked = filter_({"column": 30, "name": "pythonUDF0"})
    verdict = verdict_of([Step("BatchEvalPython", udf), asked, join("Inner", MEETING)], COLUMNS)
    assert verdict.candidates == (1, 2)
    assert verdict.reason == (
        "the condition of the filter uses the Python function `is_vip`, which is not computed again here"
    )


def test_columns_behind_an_unknown_operator_are_not_known() -> None:
    assert verdict_of([Step("MapInPandas", None), SMALL, LARGE], COLUMNS).candidates == (0, 1, 2)


def test_a_projection_that_was_not_sent_hides_all_columns() -> None:
    assert verdict_of([Step("Project", None), SMALL, LARGE], COLUMNS).candidates == (1, 2)


def test_a_projection_defines_columns() -> None:
    negated = {"defined": [{"column": 1, "as": of("UnaryMinus", AMOUNT)}]}
    assert verdict_of([Step("Project", negated), SMALL, LARGE], COLUMNS).candidates == (2,)


def test_a_union_renames_columns_by_their_places() -> None:
    union = {"output": [1, 2], "inputs": [[21, 22], [2, 1]]}
    assert verdict_of([Step("Union", union, 0), LARGE, SMALL], COLUMNS).candidates == (0 + 1, 2)
    assert verdict_of([Step("Union", union, 1), of_text("bo")], COLUMNS).candidates == ()


def of_text(text: str) -> Step:
    return filter_(of("EqualTo", AMOUNT, {"type": "string", "value": text}))


def test_the_limit_of_a_task_is_that_of_the_query() -> None:
    assert verdict_of([Step("LocalLimit", None), Step("GlobalLimit", None)], COLUMNS).candidates == (1,)


def test_operators_that_are_sent_in_another_form_decide_nothing() -> None:
    equal = {"of": "EqualTo", "inputs": [CUSTOMER]}
    for step in (join("Inner", equal), join("LeftAnti", {"of": "EqualTo"}), filter_(of("Not"))):
        assert verdict_of([step, CHANCE], COLUMNS).candidates == (0, 1)
    assert verdict_of([Step("Union", {"inputs": [[1, 2]]}), CHANCE], COLUMNS).candidates == (1,)

"""What functions use: told apart from what they used before, without running code of the program."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from spark_agent.driver.function_state import changed_since, states_of

CENTRES = [np.array([1.0, 2.0]), np.array([3.0, 4.0])]
NAMES = {"a": ["Ann"]}


class Limits:
    least = 3

    def __init__(self) -> None:
        self.most = [9]

    def __call__(self, value: int) -> bool:
        return self.least <= value <= self.most[0]

    def __repr__(self) -> str:
        raise AssertionError("code of the program was run")

    __eq__ = __hash__ = __reduce__ = __repr__  # type: ignore[assignment]


LIMITS = Limits()


def nearest(point: float) -> int:
    return min(range(len(CENTRES)), key=lambda number: abs(CENTRES[number].sum() - point))


def outer(point: float) -> int:
    return nearest(point) + 1


def closure(values: Any) -> Callable[[Any], Any]:
    return lambda record: record in values


VALUES: list[Any] = [1, 2]
GROUPS: dict[str, Any] = {"a": {1, 2}}


@pytest.mark.parametrize(
    ("function", "change", "name"),
    [
        (nearest, lambda: CENTRES[1].__setitem__(0, 7.0), "CENTRES"),
        (outer, lambda: CENTRES.append(np.zeros(2)), "nearest"),
        (closure(VALUES), lambda: VALUES.append(3), "values"),
        (closure(GROUPS), lambda: GROUPS["a"].add(3), "values"),
        (functools.partial(operator.contains, VALUES), lambda: VALUES.clear(), "partial"),
        (NAMES.get, lambda: NAMES["a"].append("Bob"), "builtin_function_or_method"),
        (LIMITS, lambda: LIMITS.most.append(1), "Limits"),
        (LIMITS.__call__, lambda: setattr(Limits, "least", 4), "method"),
    ],
)
def test_a_value_that_was_changed_in_place_is_named(
    function: Any, change: Callable[[], Any], name: str
) -> None:
    states = states_of([function])
    assert changed_since(states, [function]) == ""
    change()
    assert changed_since(states, [function]) == name


@pytest.mark.parametrize(
    "function",
    [
        len,
        str.upper,
        operator.itemgetter(1),
        re.compile("a+").match,
        np.sum,
        lambda record: record[0] + re.sub("a", "b", record[1]),
        functools.partial(max, key=len),
    ],
)
def test_what_does_not_change_is_as_it_was(function: Any) -> None:
    assert changed_since(states_of([function]), [function]) == ""


@pytest.mark.parametrize("value", [list(range(10_000)), np.zeros(1 << 20), np.array([object()]), iter([1])])
def test_what_cannot_be_told_counts_as_changed(value: Any) -> None:
    function = closure(value)
    assert changed_since(states_of([function]), [function]) == "values"


def test_a_value_that_holds_itself_ends() -> None:
    values: list[Any] = []
    values.append(values)
    function = closure(values)
    assert changed_since(states_of([function]), [function]) == ""

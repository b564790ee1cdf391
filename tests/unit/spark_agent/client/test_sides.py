"""One side of a join, over a graph and the recipes of a session."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from spark_agent.client import sides
from spark_agent.client.application import Application
from spark_agent.client.http import TraceError
from spark_agent.driver.recipes import Recipe

#: 0 and 1 are read, 2 is made of 1, 3 joins 0 and 2, 4 saves it; 5 joins 0 with 6, which is made of it.
EDGES = [(1, 2), (0, 3), (2, 3), (3, 4), (0, 6), (0, 5), (6, 5)]
KINDS = {0: "source", 1: "source", 4: "sink"}


def node(number: int) -> str:
    return f"app#{number}"


@pytest.fixture
def application() -> Application:
    nodes = {
        node(n): {"node_id": node(n), "kind": KINDS.get(n, "operator"), "name": f"op{n}"} for n in range(7)
    }
    edges = [{"source": node(source), "target": node(target)} for source, target in EDGES]
    return Application(None, "app", nodes, edges)  # type: ignore[arg-type]


@pytest.fixture
def recipes(monkeypatch: pytest.MonkeyPatch) -> dict[int, Recipe]:
    left, right, two = (Recipe(number, "textFile", source=object()) for number in (0, 1, 6))
    mapped = Recipe(2, "map", (right, len))
    made = {
        0: left,
        1: right,
        2: mapped,
        3: Recipe(3, "join", (mapped, left)),
        5: Recipe(5, "join", (left, two)),
    }
    made[6] = two
    session = SimpleNamespace(recipes=SimpleNamespace(of=made.get))
    monkeypatch.setattr(sides, "running_agent", lambda application: SimpleNamespace(session=session))
    return made


def before(application: Application, number: int, path: int, steps: int = 1) -> set[str]:
    return set(sides.sides_before(application, frozenset({node(number)}), path, steps))


def test_sides_are_those_of_the_call(application: Application, recipes: Any) -> None:
    assert before(application, 3, 0) == {node(2)}
    assert before(application, 3, 1) == {node(0)}
    assert before(application, 4, 0, steps=2) == {node(2)}
    assert before(application, 4, 0, steps=3) == {node(1)}
    assert before(application, 4, 1, steps=9) == {node(0)}


@pytest.mark.parametrize(
    ("number", "path", "steps", "text"),
    [
        (3, 2, 1, "op3 has 2 inputs: path= is from 0 to 1"),
        (3, -1, 1, "from 0 to 1"),
        (4, 0, 1, "no operation on the way has several inputs"),
        (1, 0, 1, "no operation on the way has several inputs"),
        (5, 0, 1, "cannot be told apart"),
    ],
)
def test_what_is_no_side_is_said(
    application: Application, recipes: Any, number: int, path: int, steps: int, text: str
) -> None:
    with pytest.raises(TraceError, match=text):
        before(application, number, path, steps)


def test_the_side_that_is_made_of_the_other_is_known(application: Application, recipes: Any) -> None:
    assert before(application, 5, 1) == {node(6)}


def test_an_rdd_joined_with_itself_has_no_sides(application: Application, recipes: Any) -> None:
    recipes[3].arguments = (recipes[2], recipes[2])
    with pytest.raises(TraceError, match="cannot be told apart"):
        before(application, 3, 1)


def test_without_its_recipe_the_order_is_not_known(application: Application, recipes: Any) -> None:
    del recipes[3]
    with pytest.raises(TraceError, match="keep it in a variable"):
        before(application, 3, 0)

"""One side of a join, over a graph and the recipes of a session."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from spark_agent.client import sides
from spark_agent.client.application import Application
from spark_agent.client.http import TraceError
from spark_agent.client.lineage_records import LineageRecords
from spark_agent.client.trace_starts import start_of
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


def before(application: Application, number: int, path: int) -> tuple[str, bool]:
    return sides.side_before(application, node(number), path)


def test_sides_are_those_of_the_call(application: Application, recipes: Any) -> None:
    assert before(application, 3, 0) == (node(2), True)
    assert before(application, 3, 1) == (node(0), True)
    assert before(application, 4, 0) == (node(3), False)
    assert before(application, 0, 0) == (node(0), False)


@pytest.mark.parametrize(
    ("number", "path", "text"),
    [
        (3, 2, "op3 has 2 inputs: path= is from 0 to 1"),
        (3, -1, "from 0 to 1"),
        (5, 0, "cannot be told apart"),
    ],
)
def test_what_is_no_side_is_said(
    application: Application, recipes: Any, number: int, path: int, text: str
) -> None:
    with pytest.raises(TraceError, match=text):
        before(application, number, path)


def test_the_side_that_is_made_of_the_other_is_known(application: Application, recipes: Any) -> None:
    assert before(application, 5, 1) == (node(6), True)


def test_an_rdd_joined_with_itself_has_no_sides(application: Application, recipes: Any) -> None:
    recipes[3].arguments = (recipes[2], recipes[2])
    with pytest.raises(TraceError, match="cannot be told apart"):
        before(application, 3, 1)


def test_without_its_recipe_the_order_is_not_known(application: Application, recipes: Any) -> None:
    del recipes[3]
    with pytest.raises(TraceError, match="keep it in a variable"):
        before(application, 3, 0)


class Traces:
    """Answers traces back from one record. Each record was made of those of `MADE_OF`."""

    #: Of 3, record 0 is made of record 0 of 1 and of 2, which are made of records 0 and 1 of 0.
    MADE_OF: ClassVar = {(3, 0): [(1, 0), (2, 0)], (1, 0): [(0, 0)], (2, 0): [(0, 1)]}

    def trace(self, application: str, **query: Any) -> Any:
        number, _, offset = map(int, query["record"].split("#"))
        start = [{"record_id": f"0#{offset}", "partition": 0, "offset": offset}]
        nodes: dict[str, list[dict[str, Any]]] = {}
        stack = [(number, offset)]
        while stack:
            at = stack.pop()
            stack += self.MADE_OF.get(at, [])
            record = {"record_id": f"0#{at[1]}", "partition": 0, "offset": at[1]}
            nodes.setdefault(node(at[0]), []).append(record)
        listed = [{"node_id": node_id, "records": records} for node_id, records in nodes.items()]
        yield {"start_node": node(number), "start": start, "nodes": listed, "exact": True}


@pytest.mark.parametrize(("path", "steps", "at", "offsets"), [(0, 2, 0, [0]), (1, 2, 0, [1]), (1, 1, 2, [0])])
def test_an_ancestor_of_both_sides_is_reached_over_one(
    monkeypatch: pytest.MonkeyPatch, path: int, steps: int, at: int, offsets: list[int]
) -> None:
    source = Recipe(0, "textFile", source=object())
    left, right = Recipe(1, "map", (source, len)), Recipe(2, "map", (source, len))
    by_number = {0: source, 1: left, 2: right, 3: Recipe(3, "join", (left, right))}
    session = SimpleNamespace(recipes=SimpleNamespace(of=by_number.get))
    monkeypatch.setattr(sides, "running_agent", lambda application: SimpleNamespace(session=session))
    nodes = {
        node(n): {"node_id": node(n), "kind": KINDS.get(n, "operator"), "name": f"op{n}"} for n in (0, 2, 3)
    }
    nodes[node(1)] = {"node_id": node(1), "kind": "operator", "name": "op1"}
    edges = [{"source": node(a), "target": node(b)} for a, b in [(0, 1), (0, 2), (1, 3), (2, 3)]]
    application = Application(Traces(), "app", nodes, edges)  # type: ignore[arg-type]
    joined = LineageRecords(
        application, frozenset({node(3)}), (start_of(node=node(3), partition=0, offset=0),)
    )
    reached = joined.go_back(steps, path=path).collect()
    assert [(node_id, record["offset"]) for node_id, record in reached] == [
        (node(at), one) for one in offsets
    ]
    with pytest.raises(TraceError, match="no operation on the way has several inputs"):
        joined.go_back(1, path=path).go_back(1, path=path)

from __future__ import annotations

from lineage_service.lineage import Edge, Graph, Node
from lineage_service.replays.places import depends_on_places


def node(number: int, name: str) -> Node:
    return Node(
        node_id=f"app#{number}",
        node=number,
        name=name,
        description="",
        kind="operator",
        call_site="job.py:1",
        exact=True,
        reason="",
        dataset=None,
        records=None,
        has_values=False,
    )


def edge(source: int, target: int) -> Edge:
    return Edge(source=f"app#{source}", target=f"app#{target}", flows=None)


GRAPH = Graph(
    application_id="app",
    nodes=(
        *(node(0, "textFile"), node(1, "zipWithIndex"), node(2, "saveAsTextFile")),
        *(node(3, "map"), node(4, "saveAsTextFile")),
    ),
    edges=(edge(0, 1), edge(1, 2), edge(0, 3), edge(3, 4)),
)


def test_an_index_on_the_way_depends_on_places() -> None:
    found = depends_on_places(GRAPH, {2})
    assert found is not None
    assert found.name == "zipWithIndex"


def test_an_index_beside_the_way_does_not() -> None:
    assert depends_on_places(GRAPH, {4}) is None
    assert depends_on_places(GRAPH, set()) is None

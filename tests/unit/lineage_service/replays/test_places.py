from __future__ import annotations

from dataclasses import replace

import pytest

from lineage_service.lineage import Edge, Graph, Node
from lineage_service.replays.places import counts_rows_before, depends_on_places, tells_partitions


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


def chain(*names: str, inexact: str = "") -> Graph:
    """A source, operators, and a sink behind each other."""
    last = len(names) - 1
    nodes = [
        replace(node(number, name), kind="source" if not number else "sink" if number == last else "operator")
        for number, name in enumerate(names)
    ]
    return Graph(
        application_id="app",
        nodes=tuple(replace(of, exact=of.name != inexact) for of in nodes),
        edges=tuple(edge(number, number + 1) for number in range(last)),
    )


def test_rows_before_count_where_an_index_reads_records_in_order() -> None:
    for names in (
        ("textFile", "filter", "zipWithIndex", "reduceByKey", "saveAsTextFile"),
        ("textFile", "zipWithIndex", "map", "zipWithIndex", "map", "saveAsTextFile"),
    ):
        assert counts_rows_before(chain(*names), {len(names) - 1}), names


@pytest.mark.parametrize(
    "names",
    [
        ("textFile", "sortBy", "zipWithIndex", "saveAsTextFile"),
        ("textFile", "reduceByKey", "zipWithIndex", "saveAsTextFile"),
        ("textFile", "sample", "zipWithIndex", "saveAsTextFile"),
        ("textFile", "zipWithIndex", "sample", "saveAsTextFile"),
        ("textFile", "zipWithUniqueId", "saveAsTextFile"),
        ("textFile", "mapPartitions", "zipWithIndex", "saveAsTextFile"),
    ],
)
def test_more_than_the_rows_before_counts(names: tuple[str, ...]) -> None:
    assert not counts_rows_before(chain(*names), {len(names) - 1})


def test_operations_on_records_and_keys_cannot_tell_partitions() -> None:
    assert not tells_partitions(chain("textFile", "map", "reduceByKey", "sortBy", "saveAsTextFile"))
    assert not tells_partitions(chain("textFile", "flatMap", "groupByKey", "repartition", "count"))
    assert not tells_partitions(chain("textFile", "filter", "first"))


@pytest.mark.parametrize(
    "names",
    [
        ("textFile", "mapPartitionsWithIndex", "saveAsTextFile"),
        ("textFile", "glom", "saveAsTextFile"),
        ("textFile", "zipWithUniqueId", "saveAsTextFile"),
        ("textFile", "map", "foreachPartition"),
        ("textFile", "reduceByKey", "collect"),  # in the order of partitions
        ("textFile", "reduceByKey", "map", "first"),
        ("textFile", "repartition", "take"),
        ("wholeTextFiles", "map", "saveAsTextFile"),
        ("textFile", "something new", "saveAsTextFile"),
    ],
)
def test_others_may_tell_them(names: tuple[str, ...]) -> None:
    assert tells_partitions(chain(*names))


def test_an_upper_bound_may_tell_them() -> None:
    assert tells_partitions(chain("textFile", "map", "saveAsTextFile", inexact="map"))

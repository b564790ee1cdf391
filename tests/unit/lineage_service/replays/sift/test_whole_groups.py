"""For which operations the rows of a lineage alone say what all rows say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lineage_service.lineage import Edge, Graph, Node
from lineage_service.replays.sift.whole_groups import chosen_before, sources_before, why_others_count

Chain = list[tuple[str, list[int]]]
"""Names with the numbers of parents; the first ones are sources, a name with `!` is a sink.

What is behind a space is the description.
"""


def graph_of(chain: Chain) -> Graph:
    nodes = [
        Node(
            node_id=f"app-1#{number}",
            node=number,
            name=name.rstrip("!").partition(" ")[0],
            description=name.partition(" ")[2],
            kind="sink" if name.endswith("!") else "operator" if parents else "source",
            call_site=f"/home/ann/job.py:{number}",
            exact=True,
            reason="",
            dataset=None,
            records=1,
            has_values=False,
        )
        for number, (name, parents) in enumerate(chain)
    ]
    edges = [
        Edge(source=f"app-1#{parent}", target=f"app-1#{number}", flows=None)
        for number, (_, parents) in enumerate(chain)
        for parent in parents
    ]
    return Graph(application_id="app-1", nodes=tuple(nodes), edges=tuple(edges))


@pytest.mark.parametrize(
    ("chain", "why"),
    [
        ([("textFile", []), ("map", [0]), ("filter", [1]), ("saveAsTextFile!", [2])], ""),
        ([("textFile", []), ("reduceByKey", [0]), ("filter", [1]), ("saveAsTextFile!", [2])], ""),
        ([("a", []), ("b", []), ("union", [0, 1]), ("groupByKey", [2]), ("save!", [3])], ""),
        ([("a", []), ("b", []), ("join", [0, 1]), ("map", [2]), ("save!", [3])], ""),
        ([("a", []), ("b", []), ("Join LeftAnti, (a = b)", [0, 1]), ("save!", [2])], ""),
        (
            [("a", []), ("b", []), ("leftOuterJoin", [0, 1]), ("save!", [2])],
            "leftOuterJoin (job.py:2) may look at rows that are not in its lineage",
        ),
        (
            [("a", []), ("b", []), ("Join FullOuter, (a = b)", [0, 1]), ("write!", [2])],
            "Join (job.py:2) may look at rows that are not in its lineage",
        ),
        ([("scan", []), ("Project", [0]), ("Aggregate", [1]), ("Sort", [2]), ("write!", [3])], ""),
        (
            [("textFile", []), ("zipWithIndex", [0]), ("map", [1]), ("save!", [2])],
            "zipWithIndex (job.py:1) may look at rows that are not in its lineage",
        ),
        (
            [("a", []), ("b", []), ("Filter", [0, 1]), ("save!", [2])],
            "Filter (job.py:2) may look at rows that are not in its lineage",
        ),
        (
            [("a", []), ("reduceByKey", [0]), ("map", [1]), ("groupByKey", [2]), ("save!", [3])],
            "groupByKey (job.py:3) groups what was grouped before, of which only a part is in its lineage",
        ),
        (
            [("a", []), ("Aggregate", [0]), ("Aggregate", [1]), ("save!", [2])],
            "Aggregate (job.py:2) groups what was grouped before, of which only a part is in its lineage",
        ),
    ],
)
def test_a_graph_and_why_other_rows_may_matter(chain: Chain, why: str) -> None:
    assert why_others_count(graph_of(chain), len(chain) - 1) == why


def test_an_operation_of_which_only_a_bound_is_known_may_look_at_others() -> None:
    chain: Chain = [("a", []), ("b", []), ("Join Inner, (a = b)", [0, 1]), ("save!", [2])]
    graph = graph_of(chain)
    assert why_others_count(graph, 3) == ""
    bound = [replace(node, exact=node.name != "Join") for node in graph.nodes]
    assert why_others_count(replace(graph, nodes=tuple(bound)), 3).startswith("Join (job.py:2) may look at")


def test_what_is_not_on_the_way_does_not_matter() -> None:
    chain: Chain = [("textFile", []), ("textFile", []), ("sample", [1]), ("count!", [2]), ("save!", [0])]
    graph = graph_of(chain)
    assert why_others_count(graph, 4) == ""
    assert (sources_before(graph, 4), sources_before(graph, 3)) == ({0}, {1})


def test_records_that_the_program_chose_before() -> None:
    chain: Chain = [
        *(("textFile", []), ("first!", [0]), ("reduceByKey", [0]), ("take!", [2]), ("count!", [0])),
        *(("save!", [2]), ("top!", [0])),
    ]
    assert [node.name for node in chosen_before(graph_of(chain), 5)] == ["first"]


@pytest.mark.parametrize("name", ["repartition", "coalesce", "partitionBy", "Repartition"])
def test_which_record_comes_first_behind_a_repartition_depends_on_others(name: str) -> None:
    chain: Chain = [("textFile", []), (name, [0]), ("map", [1]), ("first!", [2]), ("save!", [0])]
    assert chosen_before(graph_of(chain), 4) == []

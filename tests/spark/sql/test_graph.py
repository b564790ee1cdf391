"""The graph of DataFrames and RDDs: how much went from operator to operator, and where it changed tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lineage_service.lineage import Graph
from tests.support.spark.application import run_application

# The first test of the module runs the job of all of them.
pytestmark = pytest.mark.timeout(1800)

READINGS, FLIGHTS, DAYS, LATE = 60, 200, 20, 70

#: These read and write no rows of anybody's.
COMMANDS = [
    "create temporary view held as select * from values (1), (2) as v(n)",
    "cache lazy table held",
    "uncache table held",
    "show tables",
    "show databases",
    "describe held",
    "use default",
    "set spark.sql.shuffle.partitions",
]


def job(folder: Path, context: SparkContext) -> None:
    spark = SparkSession.builder.getOrCreate()
    readings = spark.read.csv(f"{folder}/readings.csv", schema="day int, wind int")
    flights = spark.read.csv(f"{folder}/flights.csv", schema="day int, delay int")
    strongest = readings.groupBy("day").agg({"wind": "max"})
    late = flights.where("delay >= 130").join(strongest, "day")
    late.groupBy("day").count().orderBy("day").coalesce(1).write.csv(f"{folder}/late")
    flights.repartition(2).select("delay").write.json(f"{folder}/delays")
    flights.write.parquet(f"{folder}/flights")
    spark.read.parquet(f"{folder}/flights").where("day = 3").write.json(f"{folder}/day")
    for statement in COMMANDS:
        spark.sql(statement)
    context.parallelize(range(5), 2).union(context.parallelize(range(8), 2)).saveAsTextFile(f"{folder}/union")


Edges = Mapping[tuple[str, str], list[tuple[int | None, bool]]]


@pytest.fixture(scope="module")
def graph(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Graph:
    folder = tmp_path_factory.mktemp("graph")
    (folder / "readings.csv").write_text("".join(f"{at % DAYS},{at}\n" for at in range(READINGS)))
    (folder / "flights.csv").write_text("".join(f"{at % DAYS},{at}\n" for at in range(FLIGHTS)))
    _, application = run_application(
        kafka.bootstrap_servers,
        folder / "store",
        lambda context: job(folder, context),
        spark_sql_shuffle_partitions="3",
    )
    assert application is not None
    return application.questions.graph(application.application_id)


def edges_into(graph: Graph, output: str) -> Edges:
    """Of all that an output was made from, by the names of operators: [(flows, whether a shuffle)]."""
    (sink,) = [
        node.node_id
        for node in graph.nodes
        if node.kind == "sink" and node.dataset is not None and node.dataset.name.endswith(f"/{output}")
    ]
    names = {node.node_id: node.name for node in graph.nodes}
    edges, left = defaultdict(list), [sink]
    while left:
        target = left.pop()
        for edge in graph.edges:
            if edge.target == target:
                left.append(edge.source)
                edges[names[edge.source], names[target]].append((edge.flows, edge.shuffle))
    return edges


def test_rows_are_counted_where_they_meet_and_along_operators_that_keep_them(graph: Graph) -> None:
    into = edges_into(graph, "late")
    assert into["Sort", "Repartition"] == [(DAYS, False)]
    assert into["Repartition", "csv"] == [(DAYS, False)]
    assert into["Aggregate", "Sort"] == [(DAYS, True)]
    assert sorted(into["Project", "Aggregate"]) == [(READINGS, True), (LATE, True)]
    assert into["Join", "Project"] == [(LATE, False)]
    assert sorted(into["Scan csv", "Filter"]) == [(READINGS, False), (FLIGHTS, False)]


def test_what_a_filter_leaves_is_not_counted_before_a_join(graph: Graph) -> None:
    assert edges_into(graph, "late")["Project", "Join"] == [(None, False)]


def test_a_side_that_is_brought_to_the_other_one_changes_tasks(graph: Graph) -> None:
    assert edges_into(graph, "late")["Aggregate", "Join"] == [(None, True)]


def test_a_repartition_is_a_shuffle(graph: Graph) -> None:
    into = edges_into(graph, "delays")
    assert {flows for edges in into.values() for flows, _ in edges} == {FLIGHTS}
    assert {target for (_, target), edges in into.items() if any(is_shuffle for _, is_shuffle in edges)} == {
        "Repartition"
    }


def test_of_a_scan_that_skips_rows_only_what_was_seen_behind_it_is_counted(graph: Graph) -> None:
    into = edges_into(graph, "day")
    assert into["Filter", "json"] == [(FLIGHTS // DAYS, False)]
    assert into["Scan parquet", "Filter"] == [(None, False)]


def test_each_side_of_a_union_counts_its_own(graph: Graph) -> None:
    (union,) = [node.node_id for node in graph.nodes if node.name == "union"]
    assert sorted(edge.flows or 0 for edge in graph.edges if edge.target == union) == [5, 8]


def test_commands_that_read_no_rows_are_no_operators(graph: Graph) -> None:
    names = {"csv", "json", "parquet", "union", "parallelize", "saveAsTextFile"}
    names |= {"Scan csv", "Scan parquet", "Filter", "Project", "Aggregate", "Join", "Sort", "Repartition"}
    names |= {"LocalRelation", "sql"}  # of what the view keeps
    assert {node.name for node in graph.nodes} <= names

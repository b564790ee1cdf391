"""A job with a loop: connected components, by the smallest label that each vertex hears of."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from spark_agent import contract
from tests.support.spark.application import Application, part_rows, run_application

TURNS = 4
PAIRS = [(n, n + 1) for n in range(12)] + [(20, 21), (21, 22), (20, 22), (30, 30)]
EDGES = PAIRS + [(b, a) for a, b in PAIRS]

Labels = dict[int, int]


def labels_by_turn() -> list[Labels]:
    """What each turn begins with, and what the last one ends with."""
    labels = {vertex: vertex for edge in EDGES for vertex in edge}
    turns = [labels]
    for _turn in range(TURNS):
        heard = defaultdict(list)
        for source, target in EDGES:
            heard[target].append(labels[source])
        labels = {vertex: min(label, *heard[vertex]) for vertex, label in labels.items()}
        turns.append(labels)
    return turns


def job(context: Any, out: Path) -> None:
    edges = context.parallelize(EDGES, 2).cache()
    labels = edges.flatMap(lambda edge: edge).distinct().map(lambda vertex: (vertex, vertex))
    for _turn in range(TURNS):
        messages = edges.join(labels).map(lambda pair: pair[1])
        labels = labels.union(messages).reduceByKey(min).cache()
    labels.map(lambda pair: f"{pair[0]} {pair[1]}").saveAsTextFile(str(out))


@pytest.fixture(scope="module")
def application(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Application:
    folder = tmp_path_factory.mktemp("loop")
    _, application = run_application(
        kafka.bootstrap_servers, folder, lambda context: job(context, folder / "out")
    )
    assert application is not None
    rows = {tuple(map(int, text.split())) for _, _, text in part_rows(folder / "out")}
    assert rows == set(labels_by_turn()[-1].items())
    return application


def nodes(application: Application, name: str) -> list[dict[str, Any]]:
    """The public nodes of this name, in their order."""
    registered = {
        event["node"]: event for event in application.events if event["type"] == contract.NODE_REGISTERED
    }
    return [event for event in registered.values() if event["name"] == name and event["operation"] is None]


def digests(application: Application, node: int) -> dict[int, list[int]]:
    """Run -> the digests that it has of the node's records."""
    by_run: dict[int, list[int]] = defaultdict(list)
    for block in application.blocks:
        if block.relation == contract.DIGESTS and block.node == node:
            by_run[block.run] += block.columns["digest"]
    return by_run


def versions(application: Application) -> list[set[int]]:
    """The digests of the labels that each turn begins with, and of the last ones."""
    before = next(event for event in nodes(application, "map") if event["site"]["loops"] == [])
    made = [before, *nodes(application, "reduceByKey")]
    return [set().union(*digests(application, event["node"]).values()) for event in made]


def test_calls_in_the_loop_are_visits_of_one_site(application: Application) -> None:
    lines = {}
    for name in ("join", "union", "reduceByKey"):
        sites = [event["site"] for event in nodes(application, name)]
        assert [site["visit"] for site in sites] == list(range(TURNS))
        assert len({tuple(site["path"]) for site in sites}) == 1
        (lines[name],) = {loop for site in sites for loop in site["loops"]}
    assert len(set(lines.values())) == 1
    assert all(event["site"]["loops"] == [] for event in nodes(application, "saveAsTextFile"))


def test_each_version_of_the_labels_has_the_digests_of_its_records(application: Application) -> None:
    assert [len(version) for version in versions(application)] == [len(labels) for labels in labels_by_turn()]


def test_digests_say_which_labels_a_turn_has_left_as_they_were(application: Application) -> None:
    digested, labels = versions(application), labels_by_turn()
    for earlier in range(TURNS + 1):
        for later in range(earlier, TURNS + 1):
            unchanged = labels[earlier].items() & labels[later].items()
            assert len(digested[earlier] & digested[later]) == len(unchanged)


def test_what_the_loop_only_reads_is_digested_in_its_first_turn(application: Application) -> None:
    (edges,) = nodes(application, "parallelize")
    by_run = digests(application, edges["node"])
    assert sum(map(len, by_run.values())) == len(EDGES)
    assert len(set().union(*by_run.values())) == len(set(EDGES))

"""Explanations of the labels of a graph by what a job on Spark sends: it gives each on its rows alone."""

from __future__ import annotations

from inspect import getsourcelines
from pathlib import Path
from typing import Any

import pytest

from lineage_service.tracing.columns.application import open_application, stored_files
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.explain.explainer import explain, explain_each
from lineage_service.tracing.explain.explanation import Explanation
from lineage_service.tracing.walk.result import Position
from tests.support.label_propagation import Edge, Label, propagated
from tests.support.spark.application import Application, run_application

TURNS = 4
#: Two components, with edges that carry the same label by longer ways, too.
EDGES = [
    (0, 3),
    (3, 7),
    (7, 2),
    (2, 9),
    (0, 5),
    (5, 6),
    (6, 9),
    (9, 6),
    (7, 3),
    (4, 8),
    (8, 4),
    (8, 1),
    (1, 8),
]
NODES = range(10)


def job(context: Any, folder: Path) -> None:
    nodes = context.textFile(str(folder / "nodes.txt"), 2).map(int)
    edges = context.textFile(str(folder / "edges.txt"), 2).map(lambda line: tuple(map(int, line.split())))
    for name in ("kept", "made again"):
        labels = nodes.map(lambda node: (node, node))
        for _ in range(TURNS):
            sent = labels.join(edges).map(lambda pair: (pair[1][1], pair[1][0]))
            labels = labels.union(sent).reduceByKey(min, 2)
            if name == "kept":
                labels.cache().count()
        labels.saveAsTextFile(str(folder / name))


@pytest.fixture(scope="module")
def ran(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Application, Snapshot]:
    folder = tmp_path_factory.mktemp("labels")
    (folder / "nodes.txt").write_text("".join(f"{node}\n" for node in NODES))
    (folder / "edges.txt").write_text("".join(f"{source} {target}\n" for source, target in EDGES))
    _, application = run_application(
        kafka.bootstrap_servers, folder / "store", lambda context: job(context, folder)
    )
    assert application is not None
    assert application.store is not None
    store, name = application.store, application.application_id
    return folder, application, open_application(stored_files(store, name), name, store.events(name)).snapshot


def starts(ran: tuple[Path, Application, Snapshot], name: str) -> dict[Label, list[Position]]:
    """Label in an output -> its record there."""
    folder, application, snapshot = ran
    [sink] = [node for node in application.sinks() if node.description.endswith(name)]
    labels: dict[Label, list[Position]] = {}
    for split, path in enumerate(sorted((folder / name).glob("part-*"))):
        for at, line in enumerate(path.read_text().splitlines()):
            runs = snapshot.graph.holders_of(sink.node, split, "backward")
            labels[eval(line)] = [Position(sink.node, split, at, run.number) for run in runs]
    return labels


def rows_of(
    ran: tuple[Path, Application, Snapshot], explanation: Explanation
) -> tuple[list[int], list[Edge]]:
    """The lines of both files."""
    folder, _, snapshot = ran
    rows: dict[str, list[str]] = {"nodes.txt": [], "edges.txt": []}
    for node, by_split in explanation.rows.items():
        source = snapshot.graph.topology.nodes[node]
        name = str(source.location).rpartition("/")[2]
        lines = (folder / name).read_text().splitlines()
        for split, offsets in by_split.items():
            rows[name] += [lines[source.file_rows[split].start + at] for at in offsets.tolist()]
    edges = [tuple(map(int, line.split())) for line in rows["edges.txt"]]
    return list(map(int, rows["nodes.txt"])), edges  # type: ignore[return-value]


@pytest.mark.parametrize("name", ["kept", "made again"])
def test_each_label_is_there_again_on_the_rows_that_explain_it(name: str, ran: Any) -> None:
    labels = starts(ran, name)
    assert set(labels) == propagated(NODES, EDGES, TURNS)
    explanations = explain_each(ran[2], list(labels.values()), lambda: None)
    for label, explanation in zip(labels, explanations, strict=True):
        nodes, edges = rows_of(ran, explanation)
        assert explanation.exact, explanation.reasons
        assert explanation.is_captured
        assert label in propagated(nodes, edges, TURNS)
        assert len(nodes) == 1
        assert explanation.of == len(NODES) + len(EDGES)


@pytest.mark.parametrize("name", ["kept", "made again"])
def test_a_label_that_came_in_turn_four_is_explained_by_the_edges_of_four_turns(name: str, ran: Any) -> None:
    explanation = explain(ran[2], starts(ran, name)[2, 0], lambda: None)
    assert rows_of(ran, explanation) == ([0], [(0, 3), (3, 7), (7, 2)])
    turns = [(turn.turn, turn.until) for turn in explanation.turns]
    assert turns == [(0, (0,)), (1, (1,)), (2, (2,)), (3, (TURNS,))]
    lines, first = getsourcelines(job)
    [line] = [at for at, text in enumerate(lines, first) if "in range(TURNS)" in text]
    assert {turn.loop for turn in explanation.turns} == {f"test_explanations.py:{line}"}
    assert [len(turn.sources) for turn in explanation.turns] == [1, 1, 1, 1]

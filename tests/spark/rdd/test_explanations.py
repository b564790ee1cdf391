"""Explanations of the labels of a graph by what a job on Spark sends: it gives each on its rows alone."""

from __future__ import annotations

from collections.abc import Set
from inspect import getsourcelines
from pathlib import Path
from typing import Any

import pytest

from lineage_service.queries import AbsenceQuery, ExplanationQuery, StartQuery
from lineage_service.tracing.columns.application import open_application, stored_files
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.explain.explainer import explain, explain_each
from lineage_service.tracing.explain.explanation import Explanation
from lineage_service.tracing.explain.occurrences import Occurrences
from lineage_service.tracing.walk.frontiers import Frontiers
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
    odd = nodes.filter(lambda node: node % 2).map(lambda node: (node, "odd"))
    labels.filter(lambda label: label[1] == 0).reduceByKey(min, 2).saveAsTextFile(str(folder / "zero"))
    labels.join(odd).saveAsTextFile(str(folder / "joined"))
    labels.subtractByKey(odd).saveAsTextFile(str(folder / "subtracted"))


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


def row_of(ran: tuple[Path, Application, Snapshot], node: int) -> StartQuery:
    """The row of a node's label in an output."""
    for path in sorted((ran[0] / "kept").glob("part-*")):
        for row, line in enumerate(path.read_text().splitlines()):
            if eval(line)[0] == node:
                return StartQuery(path=str(path), row=row)
    raise AssertionError(node)


def answer_of(ran: tuple[Path, Application, Snapshot], **query: Any) -> Any:
    application = ran[1]
    return application.questions.explanation(application.application_id, ExplanationQuery(**query))


def test_two_nodes_of_one_component_meet_where_their_ways_part(ran: Any) -> None:
    answer = answer_of(ran, starts=(row_of(ran, 2), row_of(ran, 6)), same=True)
    rows = {row.text: row.counts_for for row in answer.rows}
    assert rows == {
        **{"0": ("A", "B")},
        **{"0 3": ("A",), "3 7": ("A",), "7 2": ("A",)},
        **{"0 5": ("B",), "5 6": ("B",)},
    }
    same = answer.same
    assert (same.equal, [(one.what, one.text) for one in same.shared]) == (True, [("field 2", "0")])
    assert (same.a.total, same.b.total, same.both_total) == (4, 3, 1)
    assert (same.meets.turn, same.meets.total) == (0, 1)
    apart = answer_of(ran, starts=(row_of(ran, 2), row_of(ran, 8)), same=True).same
    assert (apart.equal, apart.shared, apart.both_total, apart.meets) == (False, (), 0, None)


def test_a_demanded_edge_is_there_with_what_it_was_joined_with(ran: Any) -> None:
    edges = str(ran[0] / "edges.txt")
    demanded = tuple(StartQuery(path=edges, row=EDGES.index(edge)) for edge in ((6, 9), (4, 8)))
    answer = answer_of(ran, starts=(row_of(ran, 9),), demanded=demanded, how=True)
    six, four = answer.demanded
    assert (six.text, six.in_trace, six.exact) == ("6 9", True, True)
    assert {"join", "reduceByKey"} <= {step.name for step in six.way}
    assert (four.text, four.in_trace, four.way) == ("4 8", False, ())
    rows = {row.text for row in answer.rows}
    assert {"0", "0 3", "3 7", "7 2", "2 9", "0 5", "5 6", "6 9"} >= rows >= {"0", "6 9", "0 5", "5 6"}
    assert not answer.how_graph.truncated
    for term in answer.how.split(" + "):
        lines = [place.rpartition(":") for place in term.split(" · ")]
        edges_of_term = [EDGES[int(line) - 1] for name, _, line in lines if name == "edges.txt"]
        nodes_of_term = [NODES[int(line) - 1] for name, _, line in lines if name == "nodes.txt"]
        assert (9, 0) in propagated(nodes_of_term, edges_of_term, TURNS)


@pytest.mark.parametrize(
    ("output", "operation", "key", "why"),
    [
        ("zero", "reduceByKey", "8", "filter: its function was not true of it"),
        ("joined", "join", "8", "join: no match on the other side for the key 8"),
        ("subtracted", "subtractByKey", "7", "subtractByKey: the other side has its key, too"),
    ],
)
def test_a_key_that_is_not_there_was_let_go_by_an_operation(
    output: str, operation: str, key: str, why: str, ran: Any
) -> None:
    _, application, _ = ran
    graph = application.questions.graph(application.application_id)
    [sink] = [node for node in application.sinks() if node.description.endswith(output)]
    operations = [node for node in graph.nodes if node.name == operation and node.node < sink.node]
    query = AbsenceQuery(node=operations[-1].node_id, key=key)
    absence = application.questions.absence(application.application_id, query)
    assert [(holder.name, holder.total) for holder in absence.holders] == [("reduceByKey", 1)]
    (ended,) = absence.holders[0].ended
    assert ended.ended is not None
    assert ended.ended.why == why
    assert (ended.exact, absence.exact, absence.reasons) == (True, True, ())
    sides = [side.name for side in absence.holders[0].other_sides]
    assert sides == ([] if output == "zero" else ["map"])


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


@pytest.mark.parametrize("name", ["kept", "made again"])
def test_a_merge_by_keys_says_as_much_of_a_record_as_the_whole_turn(
    name: str, ran: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = list(starts(ran, name).values())
    ways: list[frozenset[int]] = []
    of_keys = Occurrences._ways_of_keys

    def noted(self: Occurrences, node: int, before: int) -> frozenset[int]:
        ways.append(of_keys(self, node, before))
        return ways[-1]

    left_out = set[int]()
    stop = Occurrences._stop_in_other_runs

    def stopped(self: Occurrences, side: Frontiers, node: int, leading: Set[int]) -> None:
        runs = set(side.at(node))
        stop(self, side, node, leading)
        left_out.update(runs - set(side.at(node)))

    monkeypatch.setattr(Occurrences, "_ways_of_keys", noted)
    monkeypatch.setattr(Occurrences, "_stop_in_other_runs", stopped)
    by_keys = [explain(ran[2], start, lambda: None) for start in begin]
    assert any(ways), "no turn was left out"
    assert left_out, "every task was looked into"
    monkeypatch.setattr(Occurrences, "_ways_of_keys", lambda *_: frozenset())
    monkeypatch.setattr(Occurrences, "_stop_in_other_runs", lambda *_: None)
    by_turns = [explain(ran[2], start, lambda: None) for start in begin]
    for one, other in zip(by_keys, by_turns, strict=True):
        assert rows_of(ran, one) == rows_of(ran, other)
        assert one.turns == other.turns

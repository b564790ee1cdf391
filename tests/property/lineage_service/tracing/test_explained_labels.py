"""Explanations of the labels of a graph, run again: the job gives the record on its rows alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from lineage_service.tracing.columns.application import open_application, stored_files
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.explain.explainer import explain_each
from lineage_service.tracing.explain.explanation import Explanation
from lineage_service.tracing.explain.meeting_point import Rows, meet
from lineage_service.tracing.walk.result import Position
from tests.support.id_applications import FileStore
from tests.support.label_propagation import Edge, Label, Propagation, propagated, told_propagation
from tests.support.lineage_messages import APP
from tests.support.run_applications import Place

_graphs = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=14, unique=True)


@contextmanager
def opened(propagation: Propagation) -> Iterator[Snapshot]:
    with TemporaryDirectory() as folder:
        store = FileStore(Path(folder))
        store.tell(*propagation.application.runs.told())
        yield open_application(stored_files(store, APP), APP, store.events(APP)).snapshot


def explained(propagation: Propagation, version: int) -> dict[Label, Explanation]:
    with opened(propagation) as snapshot:
        labels = propagation.labels[version]
        starts = [begin(snapshot, place) for place in labels.values()]
        return dict(zip(labels, explain_each(snapshot, starts, lambda: None), strict=True))


def begin(snapshot: Snapshot, place: Place) -> list[Position]:
    runs = snapshot.graph.holders_of(place[0], place[1], "backward")
    return [Position(*place, run.number) for run in runs]


def rows_of(explanation: Explanation) -> set[Place]:
    return places_of(explanation.rows)


def places_of(rows: Rows) -> set[Place]:
    return {
        (node, split, at)
        for node, by_split in rows.items()
        for split, offsets in by_split.items()
        for at in offsets.tolist()
    }


@settings(max_examples=20)
@given(_graphs, st.integers(1, 5), st.booleans(), st.integers(1, 3))
def test_the_job_gives_a_label_on_the_rows_of_its_explanation(
    edges: list[Edge], turns: int, has_digests: bool, splits: int
) -> None:
    nodes = sorted({node for edge in edges for node in edge})
    told = told_propagation(nodes, edges, turns, splits=splits, has_digests=has_digests)
    assert set(told.labels[-1]) == propagated(nodes, edges, turns)  # it was told as it runs
    for label, explanation in explained(told, turns).items():
        rows = rows_of(explanation)
        some_nodes = [node for place, node in told.nodes.items() if place in rows]
        some_edges = [edge for place, edge in told.edges.items() if place in rows]
        assert len(rows) == len(some_nodes) + len(some_edges) == explanation.total
        assert label in propagated(some_nodes, some_edges, turns)
        assert len(some_nodes) == 1  # whose label it is
        assert len(some_edges) <= turns  # at most one for each turn


@settings(max_examples=12)
@given(_graphs, st.integers(2, 5), st.booleans(), st.data())
def test_what_explains_two_nodes_of_one_label_connects_them(
    edges: list[Edge], turns: int, has_digests: bool, data: st.DataObject
) -> None:
    nodes = sorted({node for edge in edges for node in edge})
    told = told_propagation(nodes, edges, turns, has_digests=has_digests)
    labels = told.labels[turns]
    one = data.draw(st.sampled_from(sorted(labels)))
    other = data.draw(st.sampled_from(sorted(label for label in labels if label[1] == one[1])))
    with opened(told) as snapshot:
        met = meet(snapshot, begin(snapshot, labels[one]), begin(snapshot, labels[other]), lambda: None)
    first, second = map(places_of, met.rows)
    assert [told.nodes[place] for place in first & second if place in told.nodes] == [one[1]]
    assert met.node is not None
    reached, used = {one[0]}, [told.edges[place] for place in first | second if place in told.edges]
    for _ in used:
        reached |= {node for edge in used if reached & set(edge) for node in edge}
    assert other[0] in reached


def test_a_label_is_explained_by_the_edges_that_brought_it() -> None:
    """A path of five nodes, and around it what also carries the label, later."""
    path = [(0, 1), (1, 2), (2, 3), (3, 4)]
    around = [(target, source) for source, target in path] + [(0, 5), (5, 6), (6, 7), (7, 8), (8, 4)]
    told = told_propagation(range(9), [*path, *around], turns=8)
    explanation = explained(told, 8)[4, 0]
    rows = rows_of(explanation)
    assert sorted(edge for place, edge in told.edges.items() if place in rows) == path
    assert [node for place, node in told.nodes.items() if place in rows] == [0]
    assert explanation.of == 9 + 13
    # The label arrives in turn 4 and stays: nothing happens in the turns 5 to 8.
    assert [(turn.turn, turn.until) for turn in explanation.turns] == [
        (0, (0,)),
        (1, (1,)),
        (2, (2,)),
        (3, (3,)),
        (4, (8,)),
    ]
    sources = [
        [(source.node, source.partition, source.offset) for source in turn.sources]
        for turn in explanation.turns
    ]
    assert [told.nodes[place] for place in sources[0]] == [0]
    assert [told.edges[place] for [place] in sources[1:]] == path

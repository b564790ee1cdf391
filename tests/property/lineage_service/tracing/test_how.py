"""How-provenance: each alternative alone gives the record again, and the rows are those of a trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice, product
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineage_service.tracing.columns.application import open_application, stored_files
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.explain import derivations
from lineage_service.tracing.explain.explainer import explain
from lineage_service.tracing.explain.how import UNKNOWN, Expression, How, Product, Sum, how
from lineage_service.tracing.walk.result import Position
from tests.support.id_applications import FileStore
from tests.support.label_propagation import Edge, Propagation, propagated, told_propagation
from tests.support.lineage_messages import APP
from tests.support.loop_applications import loop_applications
from tests.support.run_applications import Place, RunApplication

_graphs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12, unique=True)


@contextmanager
def opened(runs: RunApplication) -> Iterator[Snapshot]:
    with TemporaryDirectory() as folder:
        store = FileStore(Path(folder))
        store.tell(*runs.told())
        yield open_application(stored_files(store, APP), APP, store.events(APP)).snapshot


def begin(snapshot: Snapshot, place: Place) -> list[Position]:
    runs = snapshot.graph.holders_of(place[0], place[1], "backward")
    return [Position(*place, run.number) for run in runs]


def check() -> None:
    """There is time."""


def alternatives(expression: Expression) -> Iterator[frozenset[int]]:
    """The facts of each choice of alternatives."""
    if isinstance(expression, Sum):
        for term in expression.terms:
            yield from alternatives(term)
    elif isinstance(expression, Product):
        for chosen in product(*(list(islice(alternatives(one), 8)) for one in expression.factors)):
            yield frozenset().union(*chosen)
    else:
        yield frozenset({expression})


def rows_of(derived: How, facts: frozenset[int]) -> set[Place]:
    positions = [derived.fact(number).position for number in facts]
    return {(at.node, at.partition, at.offset) for at in positions}


def some_labels(told: Propagation, turns: int) -> list[tuple[tuple[int, int], Place]]:
    return sorted(told.labels[turns].items())[:4]


@settings(max_examples=20)
@given(_graphs, st.integers(1, 4), st.booleans(), st.booleans())
def test_each_alternative_alone_gives_the_label_again(
    edges: list[Edge], turns: int, has_digests: bool, are_old_first: bool
) -> None:
    nodes = sorted({node for edge in edges for node in edge})
    told = told_propagation(nodes, edges, turns, has_digests=has_digests, are_old_first=are_old_first)
    with opened(told.application.runs) as snapshot:
        for label, place in some_labels(told, turns):
            starts = begin(snapshot, place)
            derived = how(snapshot, starts, check)
            [expression] = derived.expressions
            concise = {
                (node, split, at)
                for node, by_split in explain(snapshot, starts, check).rows.items()
                for split, offsets in by_split.items()
                for at in offsets.tolist()
            }
            choices = [rows_of(derived, facts) for facts in islice(alternatives(expression), 50)]
            assert not derived.is_truncated
            for rows in choices:
                some_nodes = [node for at, node in told.nodes.items() if at in rows]
                some_edges = [edge for at, edge in told.edges.items() if at in rows]
                assert len(rows) == len(some_nodes) + len(some_edges)
                assert label in propagated(some_nodes, some_edges, turns)
            assert any(rows <= concise for rows in choices)


@settings(max_examples=20)
@given(st.data())
def test_the_rows_are_those_of_a_trace_and_some_of_them_explain_it(data: st.DataObject) -> None:
    application = data.draw(loop_applications(is_captured=data.draw(st.booleans())))
    is_public = application.runs.public()
    places = sorted(place for place in application.made if is_public[place[0]])
    if not places:
        return
    place = data.draw(st.sampled_from(places))
    with opened(application.runs) as snapshot:
        derived = how(snapshot, begin(snapshot, place), check)
        [expression] = derived.expressions
        choices = [rows_of(derived, facts) for facts in islice(alternatives(expression), 200)]
        assert set().union(*choices) <= application.rows_before([place])
        assert any(rows <= application.explained([place]).rows for rows in choices)
        if not application.winners and not application.digests:
            assert choices == [application.rows_before([place])]
        facts = {fact.number for fact in derived.facts}
        for derivation in derived.derivations:
            assert {derivation.fact, *derivation.inputs} <= facts
            assert derivation.fact not in derivation.inputs


def test_a_label_that_comes_by_two_ways_in_different_turns_has_two_alternatives() -> None:
    edges = [(2, 3), (0, 1), (1, 2), (0, 3)]
    told = told_propagation(range(4), edges, turns=4, splits=1, are_old_first=False)
    with opened(told.application.runs) as snapshot:
        derived = how(snapshot, begin(snapshot, told.labels[4][3, 0]), check)
    [expression] = derived.expressions
    ways = [
        sorted(edge for place, edge in told.edges.items() if place in rows_of(derived, facts))
        for facts in alternatives(expression)
    ]
    assert sorted(ways) == [[(0, 1), (1, 2), (2, 3)], [(0, 3)]]


def test_beyond_a_limit_the_rest_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    told = told_propagation(range(4), [(0, 1), (1, 2), (2, 3)], turns=4)
    monkeypatch.setattr(derivations, "MOST_RECORDS", 8)
    with opened(told.application.runs) as snapshot:
        derived = how(snapshot, begin(snapshot, told.labels[4][3, 0]), check)
    assert derived.is_truncated
    [expression] = derived.expressions
    assert any(UNKNOWN in facts for facts in alternatives(expression))

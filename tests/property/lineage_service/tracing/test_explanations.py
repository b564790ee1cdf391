"""Explanations of records of any loop against loops over all that is known of it, and their laws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineage_service.tracing.columns.application import open_application, stored_files
from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.explain import walk
from lineage_service.tracing.explain.explainer import explain, explain_each
from lineage_service.tracing.explain.explanation import Explanation
from lineage_service.tracing.explain.meeting_point import meet
from lineage_service.tracing.explain.ways import way_between
from lineage_service.tracing.walk.local_engine import TraceWalk
from lineage_service.tracing.walk.result import Position
from tests.support.id_applications import FileStore
from tests.support.lineage_messages import APP
from tests.support.loop_applications import Explained, LoopApplication, loop_applications
from tests.support.run_applications import Place

Rows = Mapping[int, Mapping[int, Integers]]


@contextmanager
def opened(application: LoopApplication, row_group: int = 1_000) -> Iterator[Snapshot]:
    with TemporaryDirectory() as folder:
        store = FileStore(Path(folder), row_group=row_group)
        store.tell(*application.runs.told())
        yield open_application(stored_files(store, APP), APP, store.events(APP)).snapshot


def check() -> None:
    """There is time."""


def starts(snapshot: Snapshot, places: Sequence[Place], direction: str = "backward") -> list[Position]:
    return [
        Position(node, split, at, run.number)
        for node, split, at in places
        for run in snapshot.graph.holders_of(node, split, direction)
    ]


def listed(rows: Rows) -> set[Place]:
    return {
        (node, split, at)
        for node, by_split in rows.items()
        for split, offsets in by_split.items()
        for at in offsets.tolist()
    }


def place(position: Position) -> Place:
    return position.node, position.partition, position.offset


def compared(explanation: Explanation) -> Explained:
    """In the words of the truth."""
    return Explained(
        rows=listed(explanation.rows),
        until={
            place(position): until
            for turn in explanation.turns
            for position, until in zip(turn.positions, turn.until, strict=True)
        },
        turn_of_row={place(source): turn.turn for turn in explanation.turns for source in turn.sources},
    )


def last_made(application: LoopApplication) -> list[Place]:
    """Records of the last version."""
    last = application.runs.stages[-1].end
    return sorted(place for place in application.made if place[0] == last)


@st.composite
def asked(draw: st.DrawFn, application: LoopApplication) -> list[Place]:
    is_public = application.runs.public()
    places = sorted(found for found in application.made if is_public[found[0]])
    return draw(st.lists(st.sampled_from(places), min_size=1, max_size=3, unique=True)) if places else []


@settings(max_examples=30)
@given(st.data())
def test_an_explanation_is_what_loops_over_all_records_give(data: st.DataObject) -> None:
    application = data.draw(loop_applications())
    places = data.draw(asked(application))
    with opened(application, data.draw(st.sampled_from([1, 3, 1_000]))) as snapshot:
        explanation = explain(snapshot, starts(snapshot, places), check)
        assert compared(explanation) == application.explained(places)
        assert explanation.exact
        assert listed(explanation.rows) <= application.rows_before(places)
        assert explanation.total == len(listed(explanation.rows)) <= explanation.of


@settings(max_examples=12)
@given(st.data())
def test_without_winners_and_digests_it_is_the_trace(data: st.DataObject) -> None:
    application = data.draw(loop_applications(is_captured=False))
    places = data.draw(asked(application))
    with opened(application) as snapshot:
        begin = starts(snapshot, places)
        explanation = explain(snapshot, begin, check)
        trace = TraceWalk(snapshot, "backward")
        for start in begin:
            trace.start(start.node, start.run, np.array([start.offset]))
        trace.advance(check)
        sources = (
            node for node in trace.done_nodes() if snapshot.graph.topology.nodes[node].kind == "source"
        )
        assert listed(explanation.rows) == listed({node: trace.by_partition(node) for node in sources})
        assert listed(explanation.rows) == application.rows_before(places)
        assert not explanation.rules


@settings(max_examples=12)
@given(st.data())
def test_a_batch_gives_the_explanation_of_each_group(data: st.DataObject) -> None:
    application = data.draw(loop_applications())
    groups = [data.draw(asked(application)) for _ in range(data.draw(st.integers(2, 4)))]
    with opened(application) as snapshot:
        begin = [starts(snapshot, places) for places in groups]
        alone = [replace(explain(snapshot, of_group, check), rules=()) for of_group in begin]
        together = explain_each(snapshot, begin, check)
        assert list(map(compared, together)) == list(map(compared, alone))
        assert [each.turns for each in together] == [each.turns for each in alone]
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(walk, "MOST", 0)  # one by one, and without the turns of rows
            one_by_one = explain_each(snapshot, begin, check)
        assert [listed(each.rows) for each in one_by_one] == [listed(each.rows) for each in alone]
        assert [compared(each).until for each in one_by_one] == [compared(each).until for each in alone]


@settings(max_examples=20)
@given(st.data())
def test_two_explanations_meet_at_the_last_record_that_both_need(data: st.DataObject) -> None:
    application = data.draw(loop_applications())
    sides = [data.draw(asked(application)) for _ in range(2)]
    truth = [application.explained(side) for side in sides]
    is_public = application.runs.public()
    both = {place for place in truth[0].passed & truth[1].passed if is_public[place[0]]}
    with opened(application) as snapshot, pytest.MonkeyPatch.context() as patched:
        first, second = (starts(snapshot, side) for side in sides)
        if data.draw(st.booleans()):
            patched.setattr(walk, "MOST", 0)  # one after the other
        met = meet(snapshot, first, second, check)
        assert [listed(rows) for rows in met.rows] == [of_side.rows for of_side in truth]
        assert met.node == max((node for node, _, _ in both), default=None)
        assert {
            (met.node, split, at) for split, offsets in met.partitions.items() for at in offsets.tolist()
        } == {place for place in both if place[0] == met.node}
        together = explain(snapshot, [*first, *second], check)
        assert listed(together.rows) == truth[0].rows | truth[1].rows
        for place in listed(together.rows):
            assert list(met.holders(*place)) == [side for side in range(2) if place in truth[side].rows]


@settings(max_examples=40)
@given(st.data())
def test_a_demanded_row_of_the_trace_is_explained_by_its_shortest_way(data: st.DataObject) -> None:
    application = data.draw(loop_applications())
    places = last_made(application)[:2] or data.draw(asked(application))
    of_trace = sorted(application.rows_before(places))
    if not of_trace:
        return
    others = sorted(place for place, inputs in application.made.items() if not inputs)
    row = data.draw(st.sampled_from(of_trace) | st.sampled_from(others))
    hops = application.hops_before(places)
    with opened(application) as snapshot:
        begin = starts(snapshot, places)
        holders = starts(snapshot, [row], "forward")
        way = way_between(snapshot, holders, begin, check)
        assert way.leads == (row in application.rows_before(places))
        assert way.is_exact
        if not way.leads:
            assert (way.records, way.joined) == ((), ())
            return
        on_way = [place(at) for at in way.records]
        assert on_way[0] == row
        assert on_way[-1] in places
        assert len(on_way) == hops[row] + 1
        joined = {place(at) for at in way.joined}
        of_way: set[Place] = set()
        for before, at in pairwise(on_way):
            assert before in application.made[at]
            of_way |= set() if at in application.winners else application.made[at]
        assert joined == of_way - set(on_way)
        explanation = explain(snapshot, [*begin, *starts(snapshot, [row]), *way.joined], check)
        assert row in listed(explanation.rows)
        assert application.explained(places).rows <= listed(explanation.rows)
        assert listed(explanation.rows) <= application.rows_before(places)
        assert listed(explanation.rows) == application.explained([*places, row, *joined]).rows


@settings(max_examples=12)
@given(st.data())
def test_what_was_checked_away_is_asked_again(data: st.DataObject) -> None:
    """A walk that its time ends leaves nothing behind."""
    application = data.draw(loop_applications())
    places = data.draw(asked(application))
    calls = data.draw(st.integers(0, 30))
    with opened(application) as snapshot:
        begin = starts(snapshot, places)
        left = iter(range(calls))

        def ended() -> None:
            if next(left, None) is None:
                raise TimeoutError

        try:
            explanation = explain(snapshot, begin, ended)
        except TimeoutError:
            explanation = explain(snapshot, begin, check)
        assert compared(explanation) == application.explained(places)

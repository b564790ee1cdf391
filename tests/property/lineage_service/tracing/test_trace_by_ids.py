"""Traces of records that are known by ids against loops over what the applications were made of."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineage_service.errors import InvalidQueryError, NotFoundError
from lineage_service.graph_export.application_reader import TooManyFlows, application_graph
from lineage_service.lineage import Trace
from lineage_service.queries import TraceQuery
from lineage_service.tracing.columns.application import open_application, stored_files
from lineage_service.tracing.query.service import LineageQueries
from tests.support.id_applications import (
    CACHE,
    FILTER,
    GROUPS,
    OUTPUT,
    SOURCES,
    TWO_GROUPINGS,
    FileStore,
    Id,
    IdApplication,
    Place,
    Task,
    source_id,
    stored,
    tap,
    with_others,
)
from tests.support.lineage_messages import APP

_keys = st.sampled_from([0, 3, 1 << 31, 1 << 40, (1 << 63) - 2, (1 << 63) - 1])
_splits = st.sampled_from([0, 1, 2, 700])


@st.composite
def rows(draw: st.DrawFn, ids: list[list[Id]]) -> list[list[Id]]:
    """Rows of a filter (one id each) or of joins (of some inputs none)."""
    if not ids:
        return [[]] * draw(st.integers(0, 3))
    if draw(st.booleans()):
        return [[each] for each in draw(st.lists(st.sampled_from(ids[0]), max_size=8))]
    one_of_each = st.tuples(*(st.none() | st.sampled_from(each) for each in ids))
    drawn = draw(st.lists(one_of_each, max_size=8))
    return [[each for each in row if each is not None] for row in drawn]


@st.composite
def tasks(draw: st.DrawFn, ids: list[list[Id]], *, is_grouped: bool) -> Task:
    found = draw(rows(ids))
    if not is_grouped or not found:
        return Task(rows=found)
    if draw(st.booleans()):
        span = st.tuples(st.integers(0, 3), st.integers(0, 3))
        frame = st.lists(span, min_size=len(found), max_size=len(found))
        ranges = draw(st.lists(frame, min_size=1, max_size=2))
        keys = sorted({(draw(_keys), code) for code in draw(st.sets(st.integers(0, 5), max_size=6))})
        return Task(rows=found, ranges=ranges, keys=draw(st.permutations(keys)))
    codes = [draw(st.integers(0, 3)) for _ in found]
    keys = sorted({(draw(_keys), code) for code in codes})
    return Task(rows=found, codes=codes, keys=draw(st.permutations(keys)))


@st.composite
def applications(draw: st.DrawFn) -> IdApplication:
    sources = {node: draw(st.dictionaries(_splits, st.integers(0, 5), max_size=3)) for node in SOURCES}
    ids = [
        [source_id(node, split, at) for split, count in splits.items() for at in range(count)]
        for node, splits in sources.items()
    ]
    ids = [each for each in ids if each]
    taps: list[dict[int, Task]] = []
    for at in range(draw(st.integers(0, 2))):
        taps.append(draw(st.dictionaries(_splits, tasks(ids, is_grouped=True), max_size=3)))
        keys = sorted({key for task in taps[-1].values() for key, _ in task.keys})
        if keys:
            ids = [[(tap(at, GROUPS), key) for key in keys], *ids]
    cache: dict[int, Task] = {}
    if draw(st.booleans()):
        cache = draw(st.dictionaries(_splits, tasks(ids, is_grouped=False), max_size=2))
        kept = [(CACHE, split << 33 | at) for split, task in cache.items() for at in range(task.outputs)]
        ids = [kept, *ids] if kept else ids
    output = draw(st.dictionaries(_splits, tasks(ids, is_grouped=False), min_size=1, max_size=3))
    latest = draw(st.none() | st.integers(1, 3))
    if latest is not None:
        output = {split: replace(task, execution=latest) for split, task in output.items()}
    made = IdApplication(
        sources=sources, taps=taps, output=output, cache=cache, limit=draw(st.none() | st.integers(0, 6))
    )
    return replace(made, others=draw(others(made, ids, latest)))


@st.composite
def others(
    draw: st.DrawFn, made: IdApplication, ids: list[list[Id]], latest: int | None
) -> list[tuple[int, int, Task | int, bool]]:
    """Copies with fewer records, or later ones of the same size; earlier executions may be anything.

    What groups may have been computed in a second stage, too, that cut its rows into splits in another way.
    """
    found: list[tuple[int, int, Task | int, bool]] = []
    for at, splits_of_tap in enumerate(made.taps):
        if draw(st.booleans()):
            cut = draw(st.permutations([0, 1, 2, 3, 700]))
            tasks_of_tap = sorted(splits_of_tap.items())
            found += [
                (tap(at), split, replace(task, stage=7), draw(st.booleans()))
                for split, (_, task) in zip(cut, tasks_of_tap, strict=False)
            ]
    for node, splits in made.sources.items():
        for split, count in splits.items():
            if count and draw(st.booleans()):
                found.append((node, split, draw(st.integers(0, count - 1)), draw(st.booleans())))
    for node, by_split in [
        *((tap(at), each) for at, each in enumerate(made.taps)),
        (CACHE, made.cache),
        (OUTPUT, made.output),
    ]:
        for split, task in by_split.items():
            if draw(st.booleans()):
                other = draw(tasks(ids, is_grouped=node not in (CACHE, OUTPUT)))
                other = replace(other, execution=task.execution)
                if other.outputs <= task.outputs and (node in (CACHE, OUTPUT) or bool(other.codes)):
                    found.append((node, split, other, other.outputs < task.outputs and draw(st.booleans())))
    if latest is not None:
        earlier = draw(st.dictionaries(_splits, tasks(ids, is_grouped=False), max_size=2))
        execution = draw(st.none() | st.integers(0, latest - 1))
        found += [
            (OUTPUT, split, replace(task, execution=execution), True) for split, task in earlier.items()
        ]
    return found


@st.composite
def told(draw: st.DrawFn, application: IdApplication) -> tuple[list[bytes], list[bytes]]:
    """The messages in any order, some of them twice."""

    def any_order(those: list[bytes]) -> list[bytes]:
        return draw(st.permutations([*those, *draw(st.lists(st.sampled_from(those), max_size=4))]))

    return any_order(list(application.events())), any_order(list(application.blocks()))


def asked(questions: LineageQueries, direction: str, place: Place, **also: object) -> Trace:
    node, split, offset = place
    query = TraceQuery(direction=direction, node=str(node), partition=split, offset=offset, **also)  # type: ignore[arg-type]  # what the test says
    return questions.trace(APP, query)


def places(trace: Trace) -> set[Place]:
    """The records of a trace, and each once."""
    listed = [
        (int(node.node_id.rpartition("#")[2]), record.partition, record.offset)
        for node in trace.nodes
        for record in node.records
    ]
    assert len(listed) == len(set(listed))
    return set(listed)


def flows(trace: Trace) -> set[tuple[Place, Place]]:
    return {(_place(flow.hash_in), _place(flow.hash_out)) for flow in trace.flows}


def _place(flow_id: str) -> Place:
    _, node, *_, split, offset = flow_id.split("#")
    return int(node), int(split), int(offset)


def truth_of(application: IdApplication) -> tuple[dict[Place, set[Place]], dict[Place, set[Place]]]:
    backward = application.truth()
    forward: dict[Place, set[Place]] = {
        (node, split, at): set()
        for node, splits in application.sources.items()
        for split, count in splits.items()
        for at in range(count)
    } | {place: set() for place in backward if place[0] == CACHE}
    for output, found in backward.items():
        for each in found:
            forward[each].add(output)
    return backward, forward


def ways_between(application: IdApplication, those: set[Place]) -> set[tuple[Place, Place]]:
    made = application.truth(is_direct=True)
    return {(each, output) for output in those for each in made.get(output, ()) if each in those}


@settings(max_examples=60)
@given(st.data())
def test_every_trace_finds_what_the_records_were_made_of(data: st.DataObject) -> None:
    application = data.draw(applications())
    events, blocks = data.draw(told(application))
    with TemporaryDirectory() as folder:
        store = FileStore(Path(folder), row_group=data.draw(st.integers(1, 20)))
        store.tell(events, blocks)
        questions = LineageQueries(store, time_budget_s=60)
        for direction, truth in zip(("backward", "forward"), truth_of(application), strict=True):
            for start, expected in truth.items():
                trace = asked(questions, direction, start)
                assert trace.exact
                assert places(trace) == {start, *expected}
                assert {node.node_id: node.total for node in trace.nodes} == {
                    f"{APP}#{node}": total for node, total in _totals({start, *expected}).items()
                }
                assert flows(trace) == ways_between(application, {start, *expected})


def _totals(those: set[Place]) -> dict[int, int]:
    totals: dict[int, int] = defaultdict(int)
    for node, _, _ in those:
        totals[node] += 1
    return totals


@settings(max_examples=25)
@given(applications())
def test_pages_and_ends_of_the_way_say_the_same(application: IdApplication) -> None:
    with TemporaryDirectory() as folder:
        questions = LineageQueries(stored(application, Path(folder)), time_budget_s=60)
        backward, forward = truth_of(application)
        for direction, truth, ends in (("backward", backward, SOURCES), ("forward", forward, (OUTPUT,))):
            for start, expected in truth.items():
                for end in ends:
                    there = {each for each in expected if each[0] == end}
                    trace = asked(questions, direction, start, to=str(end))
                    assert {place for place in places(trace) if place[0] == end} - {start} == there
                    assert trace.exact
                assert places(asked(questions, direction, start, depth=0)) == {start}
                near = {way for way in ways_between(application, {start, *expected}) if start in way}
                one_step = places(asked(questions, direction, start, depth=1))
                assert one_step == {start, *(each for way in near for each in way)}
                found: set[Place] = set()
                cursor = None
                while True:
                    page = asked(questions, direction, start, limit=2, cursor=cursor)
                    assert not found & (places(page) - {start})
                    found |= places(page)
                    cursor = page.next
                    if cursor is None:
                        break
                assert found == {start, *expected}


@settings(max_examples=25)
@given(applications())
def test_the_graph_of_all_records_has_the_same_ways(application: IdApplication) -> None:
    with TemporaryDirectory() as folder:
        store = stored(application, Path(folder))
        opened = open_application(stored_files(store, APP), APP, store.events(APP))
        run = application_graph(opened, 10_000)
        assert not isinstance(run, TooManyFlows)
        ids = [flow_id for column in run.columns for flow_id in column.flow_ids]
    ways = {
        (_place(ids[source]), _place(ids[target]))
        for source, target in zip(run.sources, run.targets, strict=True)
    }
    backward, forward = truth_of(application)
    assert ways == ways_between(application, {*backward, *forward})
    assert {_place(each) for each in ids} == {*backward, *forward}
    assert run.is_exact


@settings(max_examples=25)
@given(st.data())
def test_ids_of_a_split_that_nobody_told_of_make_an_answer_inexact(data: st.DataObject) -> None:
    application = data.draw(applications())
    splits = [(node, split) for node, held in application.sources.items() for split in held]
    untold = frozenset(data.draw(st.sets(st.sampled_from(splits)))) if splits else frozenset()
    application = replace(application, untold=untold)
    with TemporaryDirectory() as folder:
        questions = LineageQueries(stored(application, Path(folder)), time_budget_s=60)
        for start, expected in truth_of(application)[0].items():
            trace = asked(questions, "backward", start)
            known = {each for each in expected if each[:2] not in untold}
            assert places(trace) == {start, *known}
            assert trace.exact == (known == expected)


@pytest.fixture
def questions(tmp_path: Path) -> LineageQueries:
    return LineageQueries(stored(TWO_GROUPINGS, tmp_path), time_budget_s=60)


def test_a_group_of_groups_is_made_of_all_that_the_groups_are_made_of(questions: LineageQueries) -> None:
    trace = asked(questions, "backward", (OUTPUT, 0, 0))
    assert [node.name for node in trace.nodes] == ["n90", "n1", "n0"]
    assert places(trace) == {
        (OUTPUT, 0, 0),
        *((0, split, at) for split, at in ((0, 0), (0, 3), (1, 0), (1, 2))),
        (1, 0, 0),
        (1, 0, 1),
    }


def test_a_key_of_63_bits_is_a_key_like_any_other(questions: LineageQueries) -> None:
    assert places(asked(questions, "backward", (OUTPUT, 0, 1))) == {(OUTPUT, 0, 1), (0, 0, 3), (1, 0, 0)}
    assert places(asked(questions, "forward", (0, 0, 3))) == {(0, 0, 3), (OUTPUT, 0, 0), (OUTPUT, 0, 1)}


def test_a_row_that_was_made_of_nothing_is_its_own_trace(questions: LineageQueries) -> None:
    trace = asked(questions, "backward", (OUTPUT, 3, 0))
    assert (places(trace), trace.exact) == ({(OUTPUT, 3, 0)}, True)


def test_of_two_attempts_the_one_with_more_records_counts(tmp_path: Path) -> None:
    shorter = Task(rows=[[source_id(0, 1, 1)]])
    longer = Task(rows=[[source_id(0, 1, 1)]] * 3)
    application = with_others(TWO_GROUPINGS, (OUTPUT, 0, shorter, True), (OUTPUT, 3, longer, False))
    questions = LineageQueries(stored(application, tmp_path), time_budget_s=60)
    assert len(places(asked(questions, "backward", (OUTPUT, 0, 0)))) == 7
    assert places(asked(questions, "backward", (OUTPUT, 3, 2))) == {(OUTPUT, 3, 2), (0, 1, 1)}


def test_beyond_the_limit_of_an_output_there_are_no_records(tmp_path: Path) -> None:
    application = replace(TWO_GROUPINGS, limit=1)
    questions = LineageQueries(stored(application, tmp_path), time_budget_s=60)
    assert places(asked(questions, "forward", (0, 0, 3))) == {(0, 0, 3), (OUTPUT, 0, 0)}
    with pytest.raises(NotFoundError, match="has 1 records in partition 0"):
        asked(questions, "backward", (OUTPUT, 0, 1))
    sink = questions.graph(APP).nodes[-1]
    assert (sink.node, sink.records) == (OUTPUT, 1)


def test_a_trace_cannot_begin_or_end_where_rows_only_pass(questions: LineageQueries) -> None:
    with pytest.raises(InvalidQueryError, match="no records of its own"):
        asked(questions, "backward", (FILTER, 0, 0))
    with pytest.raises(InvalidQueryError, match="no records of its own"):
        asked(questions, "backward", (OUTPUT, 0, 0), to=str(FILTER))

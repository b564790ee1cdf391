"""Traces that end before their time, go on, and are read page by page while more arrives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lineage_service.decode.batches import event_batch, flow_batch
from lineage_service.errors import InvalidQueryError, NotFoundError, TimeBudgetError
from lineage_service.lineage import Trace
from lineage_service.queries import TraceQuery
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.columns.application import OpenedApplication, open_application, stored_files
from lineage_service.tracing.query import service
from lineage_service.tracing.query.service import LineageQueries
from lineage_service.tracing.walk import cursors
from lineage_service.tracing.walk.local_engine import TraceWalk
from spark_agent import contract
from tests.support.lineage_messages import APP, block, event, messages

WRITERS, EACH, READER = (1, 2, 3, 4), 5, 100
START = TraceQuery(direction="backward", node="7", partition=0, offset=0)


def nodes() -> list[bytes]:
    """A source, the steps of a shuffle, and one group of everything."""
    kinds = ((0, "source", contract.SOURCE), (5, "step", contract.IDENTITY), (6, "step", contract.FLOWS))
    told = [
        event(
            contract.NODE_REGISTERED, node=number, name=f"n{number}", kind=kind, relation=relation, exact=True
        )
        for number, kind, relation in (*kinds, (7, "operator", contract.FLOWS))
    ]
    told += [
        event(contract.LINK, source=source, target=target, port=0)
        for source, target in ((0, 5), (5, 6), (6, 7))
    ]
    return [event(contract.APPLICATION_STARTED, name="pages"), *told]


def committed(run: int) -> bytes:
    is_reader = run == READER
    return event(
        contract.RUN_COMMITTED,
        run=run,
        split=0 if is_reader else run - 1,
        input=6 if is_reader else 0,
        nodes=[7] if is_reader else [5],
        blocks=2 if is_reader else 0,
        inputs=len(WRITERS) * EACH if is_reader else EACH,
        outputs=1 if is_reader else EACH,
    )


def blocks() -> list[bytes]:
    count = len(WRITERS)
    spans = {"count": [EACH] * count, "in": [0] * count, "step": [1] * count, "run": list(WRITERS)}
    gather = {"count": [count * EACH], "in": list(range(count * EACH))}
    return [
        block(READER, 0, contract.SPANS, spans, node=6),
        block(READER, 1, contract.GATHER, gather, node=7),
    ]


class Arriving:
    """A store into which messages come one after the other."""

    def __init__(self, folder: Path) -> None:
        self.store = DeltaFlowStore(folder / "flows")
        self._events = 0

    def events(self, *told: bytes) -> None:
        self.store.write_events(event_batch("topic/0", messages(*told, first=self._events)))
        self._events += len(told)

    def blocks(self, *told: bytes) -> None:
        self.store.write_flows(flow_batch("topic/1", messages(*told)))


@pytest.fixture
def store(tmp_path: Path) -> Arriving:
    arriving = Arriving(tmp_path)
    arriving.events(*nodes(), committed(READER))
    arriving.blocks(*blocks())
    return arriving


@pytest.fixture
def whole(store: Arriving) -> Arriving:
    store.events(*(committed(run) for run in WRITERS))
    return store


def places(trace: Trace, node: str = "n0") -> list[tuple[int, int]]:
    return [
        (r.partition, r.offset)
        for operation in trace.nodes
        if operation.name == node
        for r in operation.records
    ]


def test_pages_neither_repeat_nor_skip_what_was_there_while_more_arrives(store: Arriving) -> None:
    store.events(committed(2), committed(4))
    questions = LineageQueries(store.store, time_budget_s=60)
    first = questions.trace(APP, TraceQuery(**{**vars_of(START), "limit": 7}))
    assert places(first) == [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (3, 0), (3, 1)]
    assert not first.exact  # two writers are not known yet
    store.events(committed(1), committed(3))
    second = questions.trace(APP, TraceQuery(**{**vars_of(START), "limit": 7, "cursor": first.next}))
    assert places(second) == [(3, 2), (3, 3), (3, 4)]
    assert [node.total for node in second.nodes if node.name == "n0"] == [20]
    assert places(questions.trace(APP, START)) == [(split, at) for split in range(4) for at in range(EACH)]


def vars_of(query: TraceQuery) -> dict[str, Any]:
    return {name: getattr(query, name) for name in TraceQuery.__slots__}


def test_a_cursor_belongs_to_its_question(whole: Arriving) -> None:
    questions = LineageQueries(whole.store, time_budget_s=60)
    page = questions.trace(APP, TraceQuery(**{**vars_of(START), "limit": 3}))
    other = {**vars_of(START), "depth": 1, "cursor": page.next}
    with pytest.raises(InvalidQueryError, match="belongs to another query"):
        questions.trace(APP, TraceQuery(**other))


def test_the_records_of_one_node_are_listed_alone_page_by_page_and_the_others_counted(
    whole: Arriving,
) -> None:
    questions = LineageQueries(whole.store, time_budget_s=60)
    every = questions.trace(APP, START)
    found: list[tuple[int, int]] = []
    cursor = None
    while True:
        asked = {**vars_of(START), "only": "0", "limit": 7, "cursor": cursor}
        page = questions.trace(APP, TraceQuery(**asked))
        assert page.truncated
        assert page.flows == ()
        assert [(node.name, node.total) for node in page.nodes] == [
            (node.name, node.total) for node in every.nodes
        ]
        assert [node.name for node in page.nodes if node.records] == ["n0"]
        found += places(page)
        cursor = page.next
        if cursor is None:
            break
    assert found == places(every)


def test_a_node_that_is_not_on_the_way_lists_nothing_and_one_that_is_not_there_is_refused(
    whole: Arriving,
) -> None:
    questions = LineageQueries(whole.store, time_budget_s=60)
    page = questions.trace(APP, TraceQuery(**{**vars_of(START), "only": "another-application#0"}))
    assert not any(node.records for node in page.nodes)
    assert page.next is None
    with pytest.raises(NotFoundError, match="no node 99"):
        questions.trace(APP, TraceQuery(**{**vars_of(START), "only": "99"}))


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda raw: raw.hex()))
def test_whatever_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidQueryError):
        cursors.decode(text, "digest")


_natural = st.integers(0, (1 << 63) - 1)


@given(st.none() | st.dictionaries(st.text(max_size=20), st.tuples(_natural, _natural)), st.booleans())
def test_a_cursor_is_read_as_it_was_written(after: dict[str, tuple[int, int]] | None, so_far: bool) -> None:
    page = cursors.Page(after=after, so_far=so_far)
    assert cursors.decode(cursors.encode("digest", page), "digest") == page


class Spent(Exception):
    pass


def ending_after(calls: int) -> Callable[[], None]:
    left = iter(range(calls))

    def check() -> None:
        if next(left, None) is None:
            raise Spent

    return check


@pytest.fixture
def opened(whole: Arriving) -> OpenedApplication:
    return open_application(stored_files(whole.store, APP), APP, whole.store.events(APP))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ends=st.lists(st.integers(0, 12), max_size=8), direction=st.sampled_from(["backward", "forward"]))
def test_a_walk_that_is_ended_anywhere_comes_to_the_same_end(
    opened: OpenedApplication, ends: list[int], direction: Any
) -> None:
    node, start = (7, [(READER, 0)]) if direction == "backward" else (0, [(2, 3)])

    def pages(walk: TraceWalk) -> object:
        return walk.page(1_000, None, lambda: None)

    straight, broken = (TraceWalk(opened.snapshot, direction) for _ in range(2))
    for walk in (straight, broken):
        for run, position in start:
            walk.start(node, run, np.array([position]))
    straight.advance(lambda: None)
    for end in ends:
        try:
            broken.advance(ending_after(end))
        except Spent:
            done = broken.page(1_000, None, lambda: None)
            assert not done.is_whole
    broken.advance(lambda: None)
    assert pages(broken) == pages(straight)


def test_a_spent_budget_gives_what_was_found_and_the_next_question_goes_on(
    whole: Arriving, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = LineageQueries(whole.store, time_budget_s=60)
    expected = questions.trace(APP, START)
    questions = LineageQueries(whole.store, time_budget_s=60)
    allowed = 0

    @contextmanager
    def budget(_cursor: object, _seconds: float) -> Iterator[Callable[[], None]]:
        check = ending_after(allowed)
        try:
            yield check
        except Spent:
            raise TimeBudgetError("spent") from None

    monkeypatch.setattr(service, "time_budget", budget)
    following = None
    while following is None:
        allowed += 1  # until the first node is done
        with pytest.raises(TimeBudgetError) as spent:
            questions.trace(APP, START)
        following = spent.value.next
    allowed = 1_000
    so_far = questions.trace(APP, TraceQuery(**{**vars_of(START), "cursor": following}))
    assert so_far.truncated
    assert so_far.next is not None
    assert [node.name for node in so_far.nodes] == ["n7"]
    after = questions.trace(APP, TraceQuery(**{**vars_of(START), "cursor": so_far.next}))
    assert after == expected

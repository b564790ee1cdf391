"""The twin answers as the real one must: symmetric, paged without loss, honest about what it lacks."""

from __future__ import annotations

import pytest

from lineage_service.errors import InvalidQueryError, NotFoundError
from lineage_service.queries import Queries, RecordQuery, TraceQuery
from tests.support.flights_and_weather import APP, questions


@pytest.fixture(scope="module")
def asked() -> Queries:
    return questions(flights=60)


def hashes(trace) -> set[str]:
    return {f"{node.node_id}#{record.record_id}" for node in trace.nodes for record in node.records}


def all_records(asked: Queries) -> list[str]:
    return [
        f"{node.node_id}#{record.record_id}"
        for node in asked.graph(APP).nodes
        for record in asked.records(APP, RecordQuery(node=node.node_id, limit=1000)).records
    ]


def test_backward_and_forward_are_symmetric(asked):
    every = all_records(asked)
    reached = {
        direction: {
            (each, other)
            for each in every
            for other in hashes(asked.trace(APP, TraceQuery(direction=direction, record=each, limit=1000)))
        }
        for direction in ("backward", "forward")
    }
    assert reached["backward"] == {(to, of) for of, to in reached["forward"]}


def test_the_pages_of_a_trace_make_up_the_whole(asked):
    query = TraceQuery(direction="backward", node="10", partition=0, offset=0)
    whole = asked.trace(APP, query)
    found: list[str] = []
    cursor = None
    while True:
        page = asked.trace(
            APP, TraceQuery(direction="backward", node="10", partition=0, offset=0, limit=3, cursor=cursor)
        )
        assert page.truncated
        found += hashes(page)
        if page.next is None:
            break
        cursor = page.next
    assert not whole.truncated
    assert len(found) == len(set(found))
    assert set(found) == hashes(whole)


def test_the_records_of_one_node_are_listed_alone_and_the_others_counted(asked):
    start = {"direction": "backward", "node": "10", "partition": 0, "offset": 0}
    whole = asked.trace(APP, TraceQuery(**start))
    first = asked.trace(APP, TraceQuery(**start, only="0", limit=2))
    rest = asked.trace(APP, TraceQuery(**start, only="0", cursor=first.next))
    assert [node.total for node in first.nodes] == [node.total for node in whole.nodes]
    assert hashes(first) | hashes(rest) == {each for each in hashes(whole) if each.startswith(f"{APP}#0#")}
    assert first.truncated
    assert rest.truncated
    assert rest.next is None


def test_depth_counts_operations(asked):
    trace = asked.trace(APP, TraceQuery(direction="backward", node="8", partition=0, offset=0, depth=2))
    assert [node.node_id for node in trace.nodes] == [f"{APP}#8", f"{APP}#7", f"{APP}#6"]


def test_to_keeps_what_lies_between(asked):
    trace = asked.trace(APP, TraceQuery(direction="backward", node="8", partition=0, offset=0, to="3"))
    assert [node.node_id for node in trace.nodes] == [f"{APP}#{number}" for number in (8, 7, 6, 5, 4, 3)]


def test_only_what_passes_an_inexact_node_is_inexact(asked):
    def exact(direction, node) -> bool:
        return asked.trace(APP, TraceQuery(direction=direction, node=node, partition=0, offset=0)).exact

    assert exact("backward", "8")
    assert not exact("backward", "10")
    assert not exact("forward", "7")
    assert exact("forward", "9")


def test_a_value_is_found_as_text_only_where_it_was_captured(asked):
    found = asked.records(APP, RecordQuery(node="7", text="BECAUSE OF", limit=1))
    assert found.total == asked.records(APP, RecordQuery(node="7")).total
    assert found.records[0].value is not None


def test_a_question_about_nothing_says_so(asked):
    with pytest.raises(NotFoundError, match="no application elsewhere"):
        asked.graph("elsewhere")
    with pytest.raises(NotFoundError, match="no node 77"):
        asked.records(APP, RecordQuery(node="77"))
    with pytest.raises(InvalidQueryError, match="say which node"):
        asked.trace(APP, TraceQuery(direction="forward", record="0#0"))

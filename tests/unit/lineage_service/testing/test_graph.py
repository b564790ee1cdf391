from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineage_service.graph.event_rows import event_rows
from lineage_service.graph.graph_store import GraphStore
from lineage_service.graph.neo4j_store import from_settings
from lineage_service.graph.row_values import MAX_ID_BYTES, GraphDataError
from lineage_service.graph.trace_rows import GraphRecord
from lineage_service.settings import Settings
from lineage_service.testing.graph import MemoryGraph
from spark_agent import contract

Call = Callable[[GraphStore], None]

APPLICATIONS = st.sampled_from(["app-1", "app-2"])
NODES = st.integers(0, 4)
NAMES = st.sampled_from(["map", "filter"])
# Few times, so that events tell different things of the same millisecond.
TIMES = st.integers(0, 2)


def event(event_type: str, /, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"type": st.just(event_type), "application_id": APPLICATIONS, "time": TIMES, **fields}
    )


EVENTS = st.one_of(
    event(contract.APPLICATION_STARTED, name=NAMES, detailed=st.booleans()),
    event(contract.APPLICATION_ENDED, counters=st.dictionaries(NAMES, st.integers(0, 3))),
    event(
        contract.NODE_REGISTERED,
        node=NODES,
        name=NAMES,
        description=NAMES,
        kind=st.sampled_from(contract.KINDS),
        relation=st.sampled_from(contract.RELATIONS),
        exact=st.booleans(),
        reason=NAMES | st.none(),
    ),
    event(contract.LINK, source=NODES, target=NODES, port=st.integers(0, 1)),
    event(contract.PARTITIONS, node=NODES),
)


@st.composite
def traces(draw: st.DrawFn) -> Call:
    """Records of one application. What is known of a record is the same in every trace, or not known."""
    application_id = draw(APPLICATIONS)
    records = []
    for node, offset in draw(st.sets(st.tuples(NODES, st.integers(0, 3)), min_size=1, max_size=6)):
        flow_id = f"{application_id}#{node}#0#{offset}"
        records.append(
            GraphRecord(
                flow_id=flow_id,
                node=node,
                hash_in=draw(st.sampled_from([None, f"{flow_id}<"])),
                hash_out=f"{flow_id}>",
                val=draw(st.sampled_from([None, f"value of {flow_id}"])),
            )
        )
    ids = st.sampled_from([record.flow_id for record in records])
    links = draw(st.lists(st.tuples(ids, ids), max_size=6))
    return lambda graph: graph.write_trace(application_id, records, links)


def tells(events: list[dict[str, Any]]) -> Call:
    return lambda graph: graph.write_events(events)


CALLS = st.lists(st.builds(tells, st.lists(EVENTS, max_size=4)) | traces(), max_size=8)


def content(graph: MemoryGraph) -> tuple[Any, ...]:
    return copy.deepcopy((graph.applications, graph.nodes, graph.sends_to, graph.flows, graph.flow_links))


@given(calls=CALLS, data=st.data())
def test_calls_again_and_in_another_order_end_in_the_same_graph(
    calls: list[Call], data: st.DataObject
) -> None:
    once, shuffled = MemoryGraph(), MemoryGraph()
    for call in calls:
        call(once)
    again = data.draw(st.lists(st.sampled_from(calls), max_size=4)) if calls else []
    for call in data.draw(st.permutations(calls + again)):
        call(shuffled)
    assert content(shuffled) == content(once)


@given(events=st.lists(EVENTS, max_size=12), cut=st.integers(0, 12))
def test_how_events_are_cut_into_batches_does_not_matter(events: list[dict[str, Any]], cut: int) -> None:
    whole, parts = MemoryGraph(), MemoryGraph()
    whole.write_events(events)
    parts.write_events(events[:cut])
    parts.write_events(events[cut:])
    assert content(parts) == content(whole)


@given(calls=CALLS)
def test_deleting_one_application_leaves_the_other(calls: list[Call]) -> None:
    both = MemoryGraph()
    for call in calls:
        call(both)
    both.delete_application("app-1")
    assert "app-1" not in str(content(both))
    before = content(both)
    both.delete_application("app-1")
    assert content(both) == before


NODE = {
    "type": contract.NODE_REGISTERED,
    "application_id": "app",
    "time": 1,
    "node": 1,
    "name": "map",
    "description": "map at job.py:1",
    "kind": "operator",
    "relation": "identity",
    "exact": True,
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"node": 1 << 63},
        {"node": -1},
        {"time": -1},
        {"operation": "7"},
        {"operation": True},
        {"call_site": 3},
        {"dataset": "file:/in"},
        {"dataset": {"name": 3}},
        {"application_id": "a" * (MAX_ID_BYTES + 1)},
        {"application_id": "\ud800"},
    ],
    ids=str,
)
def test_what_no_graph_can_hold_is_refused_at_the_door(wrong: Mapping[str, Any]) -> None:
    with pytest.raises(GraphDataError):
        event_rows([{**NODE, **wrong}])


def test_a_record_of_another_node_is_refused() -> None:
    record = GraphRecord(flow_id="app#1#0#0", node=2, hash_in=None, hash_out="app#2#0#0", val=None)
    with pytest.raises(GraphDataError, match="not of node 2"):
        MemoryGraph().write_trace("app", [record], [])


def test_without_an_address_there_is_no_graph() -> None:
    assert from_settings(Settings(neo4j_uri="")) is None

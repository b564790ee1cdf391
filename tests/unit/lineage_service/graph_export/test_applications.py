"""Which applications' flows come into the graph, and when: decided against a graph in memory."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from lineage_service.completeness import Receipt
from lineage_service.graph.application_rows import ApplicationGraph
from lineage_service.graph.graph_store import GraphUnavailableError
from lineage_service.graph.row_values import GraphDataError
from lineage_service.graph_export import applications
from lineage_service.graph_export.application_reader import TooManyFlows
from lineage_service.graph_export.applications import GraphExport, from_settings
from lineage_service.settings import Settings
from lineage_service.testing.graph import MemoryGraph
from spark_agent import contract
from spark_agent.contract.event_checks import decode_event
from tests.support.lineage_messages import event

MAX_FLOWS = 100


class Store:
    """Events of applications, and what was read."""

    def __init__(self, **events: list[dict[str, Any]]) -> None:
        self.told = events
        self.gone: set[str] = set()
        self.damaged: set[str] = set()
        self.read: list[str] = []

    def version(self) -> object:
        return 0

    def version_of(self, application_id: str) -> object:
        return len(self.told[application_id])

    def applications(self) -> Sequence[str]:
        return list(self.told)

    def events(self, application_id: str) -> Sequence[Mapping[str, Any]]:
        self.read.append(application_id)
        return self.told[application_id]

    def blocks(self, application_id: str) -> list[Receipt]:
        return [Receipt(9, 0, 1, contract.PAIRS, 3)] if application_id in self.damaged else []

    def rows(self, application_id: str) -> Mapping[str, int]:
        return {"flows": 0, "records": 0}

    def files(self, table: str, application_id: str) -> Sequence[str]:
        return ()

    def deleted(self, application_ids: Iterable[str]) -> set[str]:
        return self.gone & set(application_ids)


def told(application_id: str, event_type: str, **fields: Any) -> dict[str, Any]:
    decoded = decode_event(event(event_type, application_id=application_id, **fields))
    return dict(decoded)


def ended(application_id: str, runs: int = 0) -> list[dict[str, Any]]:
    return [
        told(application_id, contract.APPLICATION_STARTED),
        told(application_id, contract.APPLICATION_ENDED, counters={"runs": runs}),
    ]


def graph_of(store: Store) -> MemoryGraph:
    graph = MemoryGraph()
    for events in store.told.values():
        graph.write_events(events)
    return graph


def flows(graph: MemoryGraph) -> dict[str, Any]:
    return {name: application["flows"] for name, application in graph.applications.items()}


def test_what_is_complete_is_written_once_and_the_rest_waits_unread() -> None:
    store = Store(whole=ended("whole"), partial=ended("partial", runs=1))
    graph = graph_of(store)
    runs = GraphExport(lambda: store, graph, MAX_FLOWS)
    assert [runs.look() for _ in range(3)] == [1, 0, 0]
    assert flows(graph) == {"whole": "all", "partial": "not yet"}
    assert store.read.count("partial") == 1
    manifest = told("partial", contract.RUN_COMMITTED, run=1)
    store.told["partial"].append(manifest)
    assert runs.look() == 1
    assert flows(graph) == {"whole": "all", "partial": "all"}
    assert runs.applications == 2


def mapped(application_id: str) -> list[dict[str, Any]]:
    """A file that is mapped: seven records in two partitions."""
    return [
        *ended(application_id, runs=2),
        told(application_id, contract.NODE_REGISTERED, node=1, kind="source", relation=contract.SOURCE),
        told(application_id, contract.NODE_REGISTERED, node=2, relation=contract.IDENTITY),
        told(application_id, contract.LINK, source=1, target=2, port=0),
        *(
            told(
                application_id,
                contract.RUN_COMMITTED,
                run=run,
                split=run,
                input=1,
                nodes=[2],
                inputs=3 + run,
                outputs=3 + run,
            )
            for run in (0, 1)
        ),
    ]


@pytest.mark.parametrize("max_flows", [MAX_FLOWS, 10])
def test_what_went_from_node_to_node_is_counted_whether_or_not_all_of_it_comes_into_the_graph(
    max_flows: int,
) -> None:
    store = Store(counted=mapped("counted"), partial=mapped("partial")[:-1])
    graph = graph_of(store)
    GraphExport(lambda: store, graph, max_flows).look()
    assert flows(graph) == {
        "counted": "all" if max_flows == MAX_FLOWS else "on request",
        "partial": "not yet",
    }
    assert graph.sends_to["counted#1", "counted#2"]["flows"] == 7
    assert [graph.nodes[f"counted#{node}"]["records"] for node in (1, 2)] == [7, 7]
    assert "flows" not in graph.sends_to["partial#1", "partial#2"]


def test_what_was_deleted_or_is_claimed_by_another_one_is_left() -> None:
    store = Store(deleted=ended("deleted"), claimed=ended("claimed"))
    graph = graph_of(store)
    store.gone.add("deleted")
    assert graph.claim("claimed", MAX_FLOWS)
    assert GraphExport(lambda: store, graph, MAX_FLOWS).look() == 0
    assert set(flows(graph).values()) == {"not yet"}


def test_one_whose_rows_the_store_has_lost_is_not_drawn_as_if_it_were_whole() -> None:
    store = Store(whole=ended("whole"), damaged=ended("damaged"))
    store.damaged = {"damaged"}
    graph = graph_of(store)
    assert GraphExport(lambda: store, graph, MAX_FLOWS).look() == 1
    assert flows(graph) == {"whole": "all", "damaged": "not yet"}


def test_an_application_beyond_the_budget_is_looked_at_again_with_a_larger_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = Store(large=ended("large"))
    graph = graph_of(store)
    with monkeypatch.context() as patch:
        patch.setattr(applications, "application_graph", lambda *_: TooManyFlows(101))
        assert [GraphExport(lambda: store, graph, MAX_FLOWS).look() for _ in range(2)] == [0, 0]
    assert flows(graph) == {"large": "on request"}
    assert store.read == ["large"]
    assert GraphExport(lambda: store, graph, MAX_FLOWS).look() == 0
    assert GraphExport(lambda: store, graph, MAX_FLOWS + 1).look() == 1


def test_without_a_graph_or_with_a_budget_of_0_nothing_is_done() -> None:
    graph = MemoryGraph()
    assert from_settings(Settings(graph_max_flows=0), graph) is None
    assert from_settings(Settings(), None) is None
    assert from_settings(Settings(graph_max_flows=1), graph) is not None
    for name in ("graph_max_flows", "graph_max_records"):
        with pytest.raises(ValidationError, match=name):
            Settings(**{name: -1})


class Refusing(MemoryGraph):
    def write_application(self, application_id: str, claim: str, run: ApplicationGraph) -> bool:
        if application_id == "bad":
            raise GraphDataError("an id is too long")
        return super().write_application(application_id, claim, run)


def test_one_that_cannot_be_written_does_not_keep_others_from_their_turn() -> None:
    store, graph = Store(bad=ended("bad"), good=ended("good")), Refusing()
    for events in store.told.values():
        graph.write_events(events)
    runs = GraphExport(lambda: store, graph, MAX_FLOWS)
    assert [runs.look() for _ in range(2)] == [1, 0]
    assert store.read == ["bad", "good"]
    runs.look_at("bad")
    assert flows(graph) == {"bad": "not yet", "good": "all"}


class Away(MemoryGraph):
    is_away = True

    def pending(self, max_flows: int) -> tuple[str, ...]:
        if self.is_away:
            raise GraphUnavailableError("away")
        return super().pending(max_flows)


def test_a_graph_that_is_away_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lineage_service.graph_export.applications.LOOK_S", 0.01)
    monkeypatch.setattr("lineage_service.graph_export.applications.AWAY_S", 0.01)
    store, graph = Store(whole=ended("whole")), Away()
    graph.write_events(store.told["whole"])
    runs = GraphExport(lambda: store, graph, MAX_FLOWS)
    runs.look_at("whole")
    deadline = time.monotonic() + 10
    with runs.beside():
        graph.is_away = False
        while flows(graph) != {"whole": "all"} and time.monotonic() < deadline:
            time.sleep(0.01)
    assert flows(graph) == {"whole": "all"}

"""What is answered about a program that told its lineage, from a real flow store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lineage_service.errors import NotFoundError
from lineage_service.lineage import Trace
from lineage_service.queries import RecordQuery, TraceQuery
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from spark_agent.emitter import operations
from spark_agent.emitter.lineage_api import LineageApi
from tests.support.own_program import APP, Wire, cut_wire, two_sources


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    return cut_wire(monkeypatch)


def trace(questions: LineageQueries, **query: Any) -> Trace:
    return questions.trace(APP, TraceQuery(**{"direction": "backward", "limit": 1_000, **query}))


def found(answer: Trace) -> dict[str, list[str | None]]:
    return {node.name: [record.key or record.record_id for record in node.records] for node in answer.nodes}


@pytest.mark.parametrize("size", [10_000, 2])
def test_answers_over_a_program_with_branches_are_exact(
    size: int, wire: Wire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "MESSAGE_FLOWS", size)
    monkeypatch.setattr(operations, "MESSAGE_CHARACTERS", 10 * size)
    with LineageApi(APP, "two sources") as lineage:
        two_sources(lineage)
    questions = wire.questions(tmp_path)
    application = questions.application(APP)
    assert (application.name, application.state, application.complete) == ("two sources", "ended", True)
    assert found(trace(questions, record="write#1#2")) == {
        "save": ["write#1#2"],
        "double": ["L2R1 copy 1"],
        "join": ["L2R1"],
        "right": ["R1"],
        "left": ["L2"],
    }
    forward = trace(questions, direction="forward", node="1", key="R0")
    assert forward.exact
    assert found(forward) == {
        "right": ["R0"],
        "join": ["L0R0", "L1R0"],
        "double": ["L0R0 copy 0", "L0R0 copy 1", "L1R0 copy 0", "L1R0 copy 1"],
        "save": ["write#0#0", "write#0#1", "write#1#0", "write#1#1"],
    }
    assert {(flow.hash_in, flow.hash_out) for flow in forward.flows if flow.node_id == f"{APP}#2"} == {
        (f"{APP}#1#read#0#0", f"{APP}#2#0#0"),
        (f"{APP}#1#read#0#0", f"{APP}#2#0#1"),
    }
    graph = questions.graph(APP)
    assert [(node.node, node.kind, node.records) for node in graph.nodes] == [
        (0, "source", 3),
        (1, "source", 2),
        (2, "operator", 3),
        (3, "operator", 6),
        (9, "sink", 6),
    ]
    page = questions.records(APP, RecordQuery(node="2"))
    assert [(record.key, record.value) for record in page.records] == [
        ("L0R0", "[0, 0]"),
        ("L1R0", "[1, 0]"),
        ("L2R1", "[2, 1]"),
    ]


def test_backward_and_forward_are_inverse(wire: Wire, tmp_path: Path) -> None:
    with LineageApi(APP, "") as lineage:
        two_sources(lineage)
    questions = wire.questions(tmp_path)
    reached = {}
    for direction in ("backward", "forward"):
        pairs = set()
        for node in questions.graph(APP).nodes:
            for record in questions.records(APP, RecordQuery(node=node.node_id)).records:
                answer = trace(
                    questions,
                    direction=direction,
                    node=node.node_id,
                    partition=record.partition,
                    offset=record.offset,
                )
                here = (node.node_id, record.record_id)
                there = {(node.node_id, one.record_id) for node in answer.nodes for one in node.records}
                pairs |= {(here, each) if direction == "forward" else (each, here) for each in there}
        reached[direction] = pairs
    assert reached["backward"] == reached["forward"]


def test_what_was_not_committed_or_lost_is_not_answered(wire: Wire, tmp_path: Path) -> None:
    wire.lost = contract.FLOW_TOPIC
    with LineageApi(APP, "") as lineage:
        two_sources(lineage)
    questions = wire.questions(tmp_path)
    assert not questions.application(APP).complete
    with pytest.raises(NotFoundError):
        trace(questions, node="2", key="L0R0")


def test_a_file_of_a_node_is_its_dataset(wire: Wire, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("a\nb\n")
    with LineageApi(APP, "") as lineage:
        lineage.register(0, "read", path=str(tmp_path / "in.csv"))
        lineage.capture("0#", "read#0#1", "b")
    questions = wire.questions(tmp_path)
    answer = trace(questions, path=str(tmp_path / "in.csv"), row=1)
    (record,) = answer.start
    assert record.source is not None
    assert (record.key, record.source.text, record.source.warning) == ("b", "b", None)

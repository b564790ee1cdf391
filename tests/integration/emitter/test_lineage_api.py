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


def read_and_sum(lineage: LineageApi, path: Path, *, is_fatal: bool) -> None:
    """Sums numbers by letter with timed capture; the sum of `b` fails at a row that holds none."""
    lineage.register(0, "read", path=str(path))
    lineage.register(1, "split")
    lineage.register(3, "sum")
    lineage.register(2, "group", parent=3)
    for source, target in ((0, 1), (1, 2), (2, 3)):
        lineage.link(source, target)
    for row, line in enumerate(path.read_text().splitlines()):
        letter, text = line.split()
        lineage.add_input(0, f"read#0#{row}", reset=True)
        lineage.add_output(0, line, value=line)
        lineage.add_input(1, line, reset=True)
        lineage.add_output(1, f"fields of {line}")
        lineage.add_input(2, f"fields of {line}", tag=letter)
        lineage.add_output(2, f"group {letter}", tag=letter)
        try:
            _ = int(text)
        except ValueError as error:
            lineage.fail(3, f"group {letter}", error, text)
            lineage.fail(1, line, error)
            if is_fatal:
                raise
    for letter in "ab":
        lineage.capture("3#", f"group {letter}", f"sum {letter}")


@pytest.mark.parametrize("is_fatal", [False, True])
def test_a_failure_leads_to_the_rows_that_its_record_was_made_of(
    is_fatal: bool, wire: Wire, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text("a 1\nb 2\nb x\na 3\n")
    try:
        with LineageApi(APP, "") as lineage:
            read_and_sum(lineage, tmp_path / "in.txt", is_fatal=is_fatal)
    except ValueError:
        assert is_fatal
    questions = wire.questions(tmp_path)
    answer = questions.failures(APP)
    assert answer.complete
    first, second = answer.failures
    assert (first.error, first.name, first.exact, first.attempts) == ("ValueError", "sum", True, 1)
    assert first.record is not None
    assert (first.record.node_id, first.record.record_id, first.record.value) == (f"{APP}#2", "0#1", "x")
    assert [(row.line, row.text) for row in first.sources] == [(2, "b 2"), (3, "b x")]
    assert (second.name, second.exact, [row.line for row in second.sources]) == ("split", True, [3])
    assert (first.frame or "").startswith(f"{__file__}:")
    ways = trace(questions, failure=1)
    assert [node.name for node in ways.nodes] == ["group", "split", "read"]
    state = questions.application(APP)
    assert (state.state, state.complete) == ("failed" if is_fatal else "ended", True)
    if is_fatal:  # nothing else of it counts
        with pytest.raises(NotFoundError):
            trace(questions, node="1", key="fields of a 1")
        assert [node.records for node in questions.graph(APP).nodes] == [0, 0, 0]
    else:
        assert found(trace(questions, node="3", key="sum b")) == {
            "sum": ["sum b"],
            "split": ["fields of b 2", "fields of b x"],
            "read": ["b 2", "b x"],
        }


def test_a_row_that_a_source_could_not_read_is_a_failure(wire: Wire, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("1\nx\n")
    with LineageApi(APP, "") as lineage:
        lineage.register(0, "read", path=str(tmp_path / "in.txt"))
        lineage.capture("0#", "read#0#0", "one")
        lineage.fail(0, "read#0#1", ValueError("x"))
    (failure,) = wire.questions(tmp_path).failures(APP).failures
    assert (failure.name, failure.exact) == ("read", True)
    assert [(row.line, row.text) for row in failure.sources] == [(2, "x")]


@pytest.mark.parametrize("lost", [1, 2])
@pytest.mark.parametrize("is_fatal", [False, True])
def test_no_failure_is_exact_without_the_flows_on_its_way(
    is_fatal: bool, lost: int, wire: Wire, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text("a 1\nb x\n")
    try:
        with LineageApi(APP, "") as lineage:
            read_and_sum(lineage, tmp_path / "in.txt", is_fatal=is_fatal)
    except ValueError:
        assert is_fatal
    flows = wire.messages[contract.FLOW_TOPIC]
    flows[:] = [message for message in flows if contract.decode_block(message).node != lost]
    answer = wire.questions(tmp_path).failures(APP)
    assert [failure.exact for failure in answer.failures] == [False, True]  # a line of the source needs none
    assert not answer.complete


def test_a_failed_program_that_did_not_say_where_has_a_failure_without_a_record(
    wire: Wire, tmp_path: Path
) -> None:
    def divide() -> None:
        with LineageApi(APP, "") as lineage:
            two_sources(lineage)
            _ = 1 // 0

    with pytest.raises(ZeroDivisionError):
        divide()
    answer = wire.questions(tmp_path).failures(APP)
    assert [(failure.error, failure.record, failure.exact) for failure in answer.failures] == [
        ("ZeroDivisionError", None, False)
    ]
    assert "without Spark" in answer.how

"""What a program may tell with LineageApi, and what becomes of it when something fails."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

import spark_agent
from spark_agent import contract
from spark_agent.emitter.lineage_api import LineageApi, LineageApiError, LineageDeliveryError
from tests.support.own_program import APP, Wire, cut_wire, two_sources


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    return cut_wire(monkeypatch)


def failing(**options: Any) -> None:
    with LineageApi(APP, "", **options) as lineage:
        two_sources(lineage)
        _ = 1 // 0


def test_a_program_that_fails_commits_nothing(wire: Wire) -> None:
    with pytest.raises(ZeroDivisionError):
        failing()
    assert wire.of(contract.RUN_COMMITTED) == []
    assert wire.of(contract.APPLICATION_ENDED)[0]["counters"]["runs"] == 0


def test_what_is_lost_is_counted_and_said_and_the_program_goes_on(
    wire: Wire, capsys: pytest.CaptureFixture[str]
) -> None:
    wire.lost = contract.FLOW_TOPIC
    with LineageApi(APP, "") as lineage:
        two_sources(lineage)
    sent = sum(event["blocks"] for event in wire.of(contract.RUN_COMMITTED))
    assert lineage.dropped == sent > 0
    assert wire.of(contract.APPLICATION_ENDED)[0]["counters"]["dropped"] == sent
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"lineage: {sent} messages of the lineage of own-1 are lost: Kafka at")


def test_what_is_lost_raises_at_the_end_if_asked_for(wire: Wire) -> None:
    wire.lost = contract.FLOW_TOPIC
    with pytest.raises(LineageDeliveryError, match="messages of the lineage of own-1 are lost"):
        with LineageApi(APP, "", on_error="fail") as lineage:
            two_sources(lineage)
    with pytest.raises(ZeroDivisionError):  # the program's own error comes first
        failing(on_error="fail")


Call = Callable[[LineageApi], None]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda it: it.register(0, "again"), "registered already, as 'read'"),
        (lambda it: it.register(-1, "x"), "not a number from 0"),
        (lambda it: it.register(2**31, "x"), "not a number from 0"),
        (lambda it: it.register(True, "x"), "not a number from 0"),
        (lambda it: it.register("3", "x"), "not a number from 0"),
        (lambda it: it.link(0, 7), "node 7 is not registered"),
        (lambda it: it.link(1, 0), "larger number than what it reads"),
        (lambda it: it.link(1, 1), "larger number than what it reads"),
        (lambda it: it.link(0, 2), "node 2 read records from outside"),
        (lambda it: it.capture("7#0", "read#0#0", "x"), "node 7 is not registered"),
        (lambda it: it.capture("other#1#0", "a", "x"), "neither NODE#ANYTHING nor own-1#NODE#ANYTHING"),
        (lambda it: it.capture("1#0", "nobody", "x"), "neither read#PARTITION#ROW nor the hash_out"),
        (lambda it: it.capture("1#0", "read#0#0", "x"), "node 1 is no source"),
        (lambda it: it.capture("1#0", "c", "x"), r"call link\(2, 1\) first"),
        (lambda it: it.capture("0#0", "read#0#9", "a"), "name of a record already"),
        (lambda it: it.capture("0#0", "read#0#0", "new"), "was captured already"),
        (lambda it: it.capture("0#0", "read#0", "new"), "none of read#PARTITION#ROW"),
        (lambda it: it.capture("0#0", "read#0#x", "new"), "none of read#PARTITION#ROW"),
        (lambda it: it.capture("1#0", "a", "c"), "names a record of node 2"),
        (lambda it: it.capture("1#0", "a", "write#0"), "none of read#PARTITION#ROW"),
        (lambda it: it.capture("1#0", "a", f"write#0#{2**54}"), "no row of a sink"),
        (lambda it: it.capture("1#0", 7, "x"), "hash_in 7 is no text"),
        (lambda it: it.capture("1#0", "a", None), "hash_out None is no text"),
        (lambda it: it.add_input(7, "a"), "node 7 is not registered"),
        (lambda it: it.add_input([], "a"), r"node \[\] is not registered"),
        (lambda it: it.add_input(1, "nobody"), r"add_input\(1, 'nobody'\): hash_in 'nobody' is neither"),
        (lambda it: it.add_input(1, "c"), r"add_input\(1, 'c'\): 'c' is a record of node 2, and no link"),
        (lambda it: it.add_input(1, b"a"), "hash_in b'a' is no text"),
        (lambda it: it.add_input(1, "a", tag=["k"]), r"tag \['k'\] cannot be a key"),
        (lambda it: it.add_input(0, "a"), "no link goes from there to node 0"),
        (lambda it: it.add_input(0, "read#0"), "none of read#PARTITION#ROW"),
        (lambda it: it.add_output(7, "x"), "node 7 is not registered"),
        (lambda it: it.add_output(1, 3), "hash_out 3 is no text"),
        (lambda it: it.add_output(1, "x", tag={}), "cannot be a key"),
        (lambda it: it.add_output(1, "c"), "names a record of node 2"),
        (lambda it: it.add_output(0, "x"), r"and 0 rows are collected: call add_input\(0, 'read#"),
        (lambda it: it.fail(7, "a", ValueError()), "node 7 is not registered"),
        (lambda it: it.fail(1, "nobody", ValueError()), r"fail\(1, 'nobody'\): hash_in 'nobody' is neither"),
        (lambda it: it.fail(1, "c", ValueError()), r"call link\(2, 1\) first"),
        (lambda it: it.fail(1, "a", "no number"), "error 'no number' is no exception"),
        (lambda it: it.fail(1, 5, ValueError()), "hash_in 5 is no text"),
        (lambda it: it.register(3, "x", parent=7), "node 7 is not registered"),
        (lambda it: it.register(3, "x", parent=2), "must have a larger number than its steps"),
    ],
)
def test_a_call_that_cannot_be_meant_is_refused_and_takes_nothing(call: Call, text: str, wire: Wire) -> None:
    with LineageApi(APP, "") as lineage:
        lineage.register(0, "read")
        lineage.register(1, "map")
        lineage.register(2, "other")
        lineage.link(0, 1)
        lineage.capture("0#0", "read#0#0", "a")
        lineage.capture("2#0", "read#0#0", "c")
        with pytest.raises(LineageApiError, match=text):
            call(lineage)
    assert [event["outputs"] for event in wire.of(contract.RUN_COMMITTED)] == [1, 1]
    assert [block.relation for block in wire.blocks] == [contract.KEYS] * 2


@pytest.mark.parametrize("application_id", ["", "a#b", "/etc", "x" * 201, 7])
def test_an_application_needs_an_id_that_can_name_a_folder(application_id: Any) -> None:
    with pytest.raises(LineageApiError, match=r"^application_id .* is not 1 to 200 letters"):
        LineageApi(application_id, "")
    with pytest.raises(LineageApiError, match=r"^parent_application .* is not 1 to 200 letters"):
        LineageApi(APP, "", parent_application=application_id)


def test_the_start_names_what_started_the_program(wire: Wire) -> None:
    with pytest.raises(LineageApiError, match="cannot be its own parent"):
        LineageApi(APP, "", parent_application=APP)
    with LineageApi(APP, "", parent_application="flow-7"):
        pass
    assert [event["parent"] for event in wire.of(contract.APPLICATION_STARTED)] == [{"run": "flow-7"}]


def test_a_step_has_an_operation_of_its_own(wire: Wire) -> None:
    with LineageApi(APP, "") as lineage:
        lineage.register(0, "read")
        lineage.register(9, "join")
        lineage.register(1, "hash", parent=9)
        with pytest.raises(LineageApiError, match="node 1 is a step itself: node 2 is a step of node 9, too"):
            lineage.register(2, "x", parent=1)
        lineage.link(0, 1)
        lineage.link(1, 9)
    kinds = {
        event["node"]: (event["kind"], event["operation"]) for event in wire.of(contract.NODE_REGISTERED)
    }
    assert kinds == {0: ("source", None), 1: ("step", 9), 9: ("sink", None)}


def test_nothing_is_told_outside_of_the_with_block(wire: Wire) -> None:
    lineage = LineageApi(APP, "")
    with pytest.raises(LineageApiError, match="does not run"):
        lineage.register(0, "read")
    with lineage:
        lineage.register(0, "read")
    with pytest.raises(LineageApiError, match="does not run"):
        lineage.capture("0#0", "read#0#0", "a")
    with pytest.raises(LineageApiError, match="one LineageApi, one execution"):
        lineage.__enter__()
    assert len(wire.of(contract.APPLICATION_STARTED)) == 1


def test_threads_may_capture_at_the_same_time(wire: Wire) -> None:
    def read(lineage: LineageApi, thread: int) -> None:
        for row in range(500):
            lineage.capture("0#", f"read#{thread}#{row}", f"{thread}:{row}")
            lineage.capture("1#", f"{thread}:{row}", "all")

    with LineageApi(APP, "") as lineage:
        lineage.register(0, "read")
        lineage.register(1, "sum")
        lineage.link(0, 1)
        threads = [threading.Thread(target=read, args=(lineage, number)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    pairs = [
        pair
        for block in wire.blocks
        if block.relation == contract.PAIRS
        for pair in zip(block.columns["out"], block.columns["in"], block.columns["run"], strict=True)
    ]
    assert len(set(pairs)) == len(pairs) == 2_000
    assert {out for out, _, _ in pairs} == {0}


def flows(wire: Wire) -> list[tuple[int, int]]:
    """(output, input)."""
    return [
        pair
        for block in wire.blocks
        if block.relation == contract.PAIRS
        for pair in zip(block.columns["out"], block.columns["in"], strict=True)
    ]


def read_and_map(lineage: LineageApi, rows: int) -> None:
    lineage.register(0, "read")
    lineage.register(1, "map")
    lineage.link(0, 1)
    for row in range(rows):
        lineage.add_input(0, f"read#0#{row}", reset=True)
        lineage.add_output(0, f"row {row}")


def test_a_running_sum_has_one_flow_for_each_input(wire: Wire) -> None:
    with LineageApi(APP, "") as lineage:
        read_and_map(lineage, 100)
        for row in range(100):
            lineage.add_input(1, f"row {row}")
            lineage.add_input(1, f"row {row}")
            lineage.add_output(1, "sum")
    assert flows(wire) == [(0, row) for row in range(100)]


def test_an_output_before_any_input_has_none(wire: Wire) -> None:
    with LineageApi(APP, "") as lineage:
        read_and_map(lineage, 1)
        lineage.add_input(1, "row 0", tag="a")
        lineage.add_output(1, "nothing", tag="b")
        lineage.add_output(1, "still nothing")
        lineage.add_output(1, "a row", tag="a", value=7, reset=True)
        lineage.add_output(1, "forgotten", tag="a")
    assert flows(wire) == [(2, 0)]
    assert [event["outputs"] for event in wire.of(contract.RUN_COMMITTED)] == [1, 4]


def test_a_refused_call_resets_nothing(wire: Wire) -> None:
    with LineageApi(APP, "") as lineage:
        read_and_map(lineage, 1)
        lineage.add_input(1, "row 0")
        with pytest.raises(LineageApiError):
            lineage.add_input(1, "nobody", reset=True)
        with pytest.raises(LineageApiError):
            lineage.add_output(1, "row 0", reset=True)
        lineage.add_output(1, "made")
    assert flows(wire) == [(0, 0)]


def test_a_record_of_a_source_is_one_row(wire: Wire) -> None:
    with LineageApi(APP, "") as lineage:
        lineage.register(0, "left")
        lineage.register(1, "right")
        lineage.add_input(1, "read#0#0")
        with pytest.raises(LineageApiError, match="node 1 read records from outside"):
            lineage.link(0, 1)
        lineage.add_input(1, "read#0#1")
        with pytest.raises(LineageApiError, match="and 2 rows are collected"):
            lineage.add_output(1, "both")


def test_a_failure_is_sent_at_once(wire: Wire) -> None:
    at_once = []

    def divide() -> None:
        with LineageApi(APP, "") as lineage:
            read_and_map(lineage, 3)
            try:
                _ = 1 // 0
            except ZeroDivisionError as error:
                lineage.fail(1, "row 2", error, {"price": 0})
                at_once.extend(wire.of(contract.RUN_FAILED))
                raise

    with pytest.raises(ZeroDivisionError):
        divide()
    (event,) = at_once
    assert (event["input"], event["nodes"], event["failed_node"]) == (0, [1], 1)
    assert (event["split"], event["position"], event["certain"]) == (0, 2, True)
    assert (event["error"], event["message"]) == ("ZeroDivisionError", "integer division or modulo by zero")
    assert event["record"] == ["json", '{"price": 0}']
    (end,) = wire.of(contract.APPLICATION_ENDED)
    assert end["state"] == contract.FAILED
    assert end["error"] == {"type": event["error"], "message": event["message"], "frame": event["frame"]}
    assert len(wire.of(contract.RUN_KEPT)) == 1
    assert wire.of(contract.RUN_COMMITTED) == []


def test_without_a_hash_the_input_that_was_collected_last_is_meant(wire: Wire) -> None:
    with LineageApi(APP, "") as lineage:
        read_and_map(lineage, 2)
        lineage.fail(1, None, ValueError("jdbc:postgresql://me:secret@db/x"))
        lineage.add_input(1, "row 0")
        lineage.add_input(1, "row 1", tag="other")
        lineage.fail(1, None, ValueError())
    failed = wire.of(contract.RUN_FAILED)
    assert [(event["position"], event["certain"]) for event in failed] == [(None, False), (1, False)]
    assert "secret" not in failed[0]["message"]


def test_failures_without_end_are_counted(wire: Wire) -> None:
    with LineageApi(APP, "") as lineage:
        read_and_map(lineage, 1)
        for _ in range(1_003):
            lineage.fail(1, "row 0", ValueError())
    assert len(wire.of(contract.RUN_FAILED)) == 1_000
    assert [event["reason"] for event in wire.of(contract.GAP)] == [
        "failures of the program beyond the first 1000: 3"
    ]


def test_an_error_that_cannot_say_what_it_is(wire: Wire) -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise ValueError

    with LineageApi(APP, "") as lineage:
        read_and_map(lineage, 1)
        lineage.fail(1, "row 0", Odd())
    (event,) = wire.of(contract.RUN_FAILED)
    assert (event["error"], event["message"], event["frame"]) == ("Odd", "", None)


def test_the_package_offers_it_and_imports_nothing_for_it() -> None:
    assert spark_agent.LineageApi is LineageApi
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = spark_agent.nothing
    code = "import sys, spark_agent; print([name for name in sys.modules if name.startswith('spark_agent.')])"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    assert "api" not in done.stdout

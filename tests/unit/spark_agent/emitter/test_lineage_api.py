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


@pytest.mark.parametrize("application_id", ["", "a#b", "/etc", "x" * 201])
def test_an_application_needs_an_id_that_can_name_a_folder(application_id: str) -> None:
    with pytest.raises(LineageApiError, match="is not 1 to 200 letters"):
        LineageApi(application_id, "")


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


def test_the_package_offers_it_and_imports_nothing_for_it() -> None:
    assert spark_agent.LineageApi is LineageApi
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = spark_agent.nothing
    code = "import sys, spark_agent; print([name for name in sys.modules if name.startswith('spark_agent.')])"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    assert "api" not in done.stdout

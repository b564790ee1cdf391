"""A real application from which one message was lost, asked over HTTP: it says so, and what is missing."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkConf, SparkContext

from lineage_api.app import create_app
from spark_agent import contract
from spark_agent.contract.event_checks import decode_event
from tests.support.api_client import Client
from tests.support.spark.application import application_of, messages_of


@dataclass(frozen=True, kw_only=True)
class Messages:
    """All that one application has sent."""

    events: list[bytes]
    blocks: list[bytes]
    output: Path

    def of_type(self, event_type: str) -> list[bytes]:
        return [event for event in self.events if decode_event(event)["type"] == event_type]


@pytest.fixture(scope="module")
def sent(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Messages:
    folder = tmp_path_factory.mktemp("sent")
    (folder / "in.txt").write_text("".join(f"{number}\n" for number in range(40)))
    topics = {name: f"{uuid.uuid4().hex[:10]}-{name}" for name in ("node", "flow")}
    conf = {
        "spark.master": "local[2]",
        "spark.app.name": "complete",
        "spark.ui.enabled": "false",
        "spark.lineage.enabled": "true",
        "spark.lineage.kafka.bootstrap.servers": kafka.bootstrap_servers,
        **{f"spark.lineage.topic.{name}": topic for name, topic in topics.items()},
    }
    context = SparkContext(conf=SparkConf().setAll(list(conf.items())))
    context.setLogLevel("OFF")
    try:
        evens = context.textFile(str(folder / "in.txt"), 2).filter(lambda line: int(line) % 2 == 0)
        pairs = evens.map(lambda line: (line[-1], int(line)))
        pairs.reduceByKey(max, 2).saveAsTextFile(str(folder / "out"))
    finally:
        context.stop()
    events, blocks = (messages_of(kafka.bootstrap_servers, topics[name]) for name in ("node", "flow"))
    return Messages(events=events, blocks=blocks, output=folder / "out")


@pytest.fixture
def ask(tmp_path: Path, sent: Messages) -> Callable[..., dict[str, Any]]:
    """ask(without) -> the application as the API tells it when these messages never arrived."""

    def ask(*without: bytes, blocks: list[bytes] | None = None) -> dict[str, Any]:
        events = [event for event in sent.events if event not in without]
        kept = [each for each in (sent.blocks if blocks is None else blocks) if each not in without]
        application = application_of(events, kept, tmp_path / uuid.uuid4().hex)
        client = Client(create_app(application.questions))
        path = f"/api/applications/{application.application_id}"
        answer = client.get(path).json()
        (listed,) = client.get("/api/applications").json()["applications"]
        assert listed == answer
        graph = client.get(f"{path}/graph")  # whatever is lost, what is there can be asked
        assert graph.status_code == 200, graph.text
        sink = next((node for node in graph.json()["nodes"] if node["kind"] == "sink"), None)
        if sink is not None:
            query = f"{path}/trace?direction=backward&path={sent.output}/part-00000&row=0"
            trace = client.get(query)
            assert trace.status_code in (200, 404, 422), trace.text
            if trace.status_code == 200:
                assert trace.json()["complete"] is answer["complete"]
        return answer

    return ask


def test_an_application_of_which_all_has_arrived_is_complete(ask: Callable[..., Any], sent: Messages) -> None:
    answer = ask()
    assert (answer["complete"], answer["missing"], answer["missing_blocks"]) == (True, "", 0)
    counters = {
        name: answer["counters"][name] for name in ("blocks", "dropped", "missing_runs", "missing_events")
    }
    assert counters == {"blocks": len(sent.blocks), "dropped": 0, "missing_runs": 0, "missing_events": 0}


def test_each_block_that_is_lost_is_missed(ask: Callable[..., Any], sent: Messages) -> None:
    for lost in sent.blocks:
        answer = ask(lost)
        run = contract.decode_block(lost).run
        assert (answer["complete"], answer["missing_blocks"]) == (False, 1)
        assert answer["missing"].startswith("missing blocks: 1, of 1 of ")
        assert f"(task run {run} of partition " in answer["missing"]


@pytest.mark.thorough
def test_each_event_that_is_lost_is_missed(ask: Callable[..., Any], sent: Messages) -> None:
    said = {
        contract.APPLICATION_STARTED: "missing events (nodes, links, partitions): 1",
        contract.NODE_REGISTERED: "missing events (nodes, links, partitions): 1",
        contract.LINK: "missing events (nodes, links, partitions): 1",
        contract.PARTITIONS: "missing events (nodes, links, partitions): 1",
        contract.RUN_COMMITTED: "missing manifests of committed runs: 1",
        contract.APPLICATION_ENDED: "its end has not arrived",
    }
    for event_type, missing in said.items():
        lost = sent.of_type(event_type)
        assert lost, event_type
        for each in lost:
            answer = ask(each)
            assert (answer["complete"], answer["missing"]) == (False, missing), event_type
            assert answer["state"] == ("running" if event_type == contract.APPLICATION_ENDED else "ended")


def test_messages_that_come_twice_change_nothing(ask: Callable[..., Any], sent: Messages) -> None:
    assert ask(blocks=[*sent.blocks, *sent.blocks])["complete"] is True


def test_many_losses_are_all_said(ask: Callable[..., Any], sent: Messages) -> None:
    manifest, node, end = (
        sent.of_type(kind)[0]
        for kind in (contract.RUN_COMMITTED, contract.NODE_REGISTERED, contract.APPLICATION_ENDED)
    )
    manifest_of = {decode_event(each)["run"] for each in sent.of_type(contract.RUN_COMMITTED)}
    manifest_of.discard(decode_event(manifest)["run"])
    block = next(block for block in sent.blocks if contract.decode_block(block).run in manifest_of)
    missing = ask(manifest, node, block)["missing"]
    assert missing.split(", of")[0].split("; ") == [
        "missing manifests of committed runs: 1",
        "missing events (nodes, links, partitions): 1",
        "missing blocks: 1",
    ]
    assert ask(manifest, node, block, end)["missing"].startswith(
        "its end has not arrived; missing blocks: 1,"
    )

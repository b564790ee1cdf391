"""What a LineageApi sends, without Kafka, and a program to send it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lineage_service.decode.batches import event_batch, flow_batch
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from spark_agent.contract.event_checks import decode_event
from spark_agent.delivery import producer, topics
from spark_agent.emitter.lineage_api import LineageApi
from tests.support.lineage_messages import messages, undeclared_fields

APP = "own-1"


class Wire:
    """Stands for Kafka: keeps the messages, or loses those of a topic."""

    def __init__(self) -> None:
        self.messages: dict[str, list[bytes]] = {contract.NODE_TOPIC: [], contract.FLOW_TOPIC: []}
        self.lost = ""

    spool_delivery = None

    def sender(self, _settings: Any, _wait_budget: Any, spool: Any = None) -> Wire:
        return self

    def send(self, topic: str, partition: int, key: bytes, message: bytes, delivery: Any) -> None:
        assert partition < 7
        assert key.startswith(APP.encode())
        if topic == self.lost:
            delivery.fail("lost")
        else:
            self.messages[topic].append(message)

    def flush(self, delivery: Any) -> int:
        return int(delivery.failed)

    @property
    def events(self) -> list[dict[str, Any]]:
        events = [decode_event(message) for message in self.messages[contract.NODE_TOPIC]]
        assert set().union(*map(undeclared_fields, events)) == set()
        return events

    @property
    def blocks(self) -> list[contract.Block]:
        return [contract.decode_block(message) for message in self.messages[contract.FLOW_TOPIC]]

    def of(self, event_type: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == event_type]

    def questions(self, folder: Path) -> LineageQueries:
        """What a flow store with these messages answers."""
        store = DeltaFlowStore(folder / "flows")
        store.write_events(event_batch("group/node-0", messages(*self.messages[contract.NODE_TOPIC])))
        if self.messages[contract.FLOW_TOPIC]:
            store.write_flows(flow_batch("group/flow-0", messages(*self.messages[contract.FLOW_TOPIC])))
        return LineageQueries(store, time_budget_s=60)


def cut_wire(monkeypatch: pytest.MonkeyPatch, wire: Wire | None = None) -> Wire:
    """A wire that every LineageApi of the test sends to."""
    made = wire or Wire()
    monkeypatch.setattr(producer, "Sender", made.sender)
    monkeypatch.setattr(
        topics, "create_missing_topics", lambda _settings, partitions: (dict.fromkeys(partitions, 7), "")
    )
    return made


def two_sources(lineage: LineageApi) -> None:
    """0: left, 1: right, 2: their pairs by letter, 3: every pair twice, 9: a sink."""
    for number, name in ((0, "left"), (1, "right"), (2, "join"), (3, "double"), (9, "save")):
        lineage.register(number, name)
    for source, target in ((0, 2), (1, 2), (2, 3), (3, 9)):
        lineage.link(source, target)
    for row, letter in enumerate("aab"):
        lineage.capture(f"0#{row}", f"read#0#{row}", f"{APP}#0#L{row}", letter)
    for row, letter in enumerate("ab"):
        lineage.capture(f"1#{row}", f"read#0#{row}", f"R{row}", letter)
    for left, right in ((0, 0), (1, 0), (2, 1)):
        pair = f"L{left}R{right}"
        lineage.capture("2#", f"{APP}#0#L{left}", pair, (left, right))
        lineage.capture("2#", f"R{right}", pair, "not this one: the first value counts")
        for copy in range(2):
            lineage.capture(f"{APP}#3#any", pair, f"{pair} copy {copy}")
            lineage.capture("9#", f"{pair} copy {copy}", f"write#{copy}#{left}")

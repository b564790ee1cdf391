"""`lineage dead-letters` against a real Kafka: what is buried is shown, and goes back once."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from lineage_service.decode.batches import DeadLetter, Message
from lineage_service.kafka.dead_letters import KafkaDeadLetters


class Desk:
    """Topics of one test, and the command."""

    def __init__(self, servers: str, name: str) -> None:
        self.servers = servers
        self.topics = {kind: f"{kind}-{name}" for kind in ("node", "flow", "dead")}
        self.group = f"group-{name}"
        admin = AdminClient({"bootstrap.servers": servers})
        counts = {"node": 1, "flow": 3, "dead": 2}
        made = admin.create_topics([NewTopic(self.topics[kind], counts[kind]) for kind in counts])
        for each in made.values():
            each.result(30)

    def bury(self, *offsets: int, kind: str = "flow", partition: int = 1, value: bytes = b"poison") -> None:
        letters = [
            DeadLetter(
                message=Message(
                    topic=self.topics[kind],
                    partition=partition,
                    offset=offset,
                    key=b"key",
                    value=value,
                    written_ms=1_700_000_000_000 + offset,
                ),
                reason=f"reason {offset}",
            )
            for offset in offsets
        ]
        KafkaDeadLetters(self.servers, self.topics["dead"]).send(letters)

    def run(self, *argv: str, code: int = 0, servers: str = "") -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LINEAGE_")}
        result = subprocess.run(
            [sys.executable, "-m", "lineage_service.cli.main", "dead-letters", *argv]
            + ["--kafka-bootstrap-servers", servers or self.servers, "--consumer-group", self.group]
            + [flag for kind in ("node", "flow") for flag in (f"--{kind}-topic", self.topics[kind])]
            + ["--dead-letter-topic", self.topics["dead"]],
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert result.returncode == code, result
        return result.stdout + result.stderr

    def listed(self, *argv: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.run("list", "--json", *argv).splitlines()]

    def sent_back(self, kind: str = "flow", partition: int = 1) -> list[tuple[bytes, bytes]]:
        """(key, value) of all that is in a topic partition."""
        place = TopicPartition(self.topics[kind], partition, 0)
        reader = Consumer({"bootstrap.servers": self.servers, "group.id": "r", "enable.auto.commit": False})
        with closing(reader):
            _, end = reader.get_watermark_offsets(place, timeout=60)
            reader.assign([place])
            found: list[Any] = []
            deadline = time.monotonic() + 240
            while len(found) < end and time.monotonic() < deadline:
                found += reader.consume(end - len(found), 0.5)
            assert len(found) == end
            return [(message.key(), message.value()) for message in found]


@pytest.fixture
def desk(kafka: Any, topic: str) -> Desk:
    return Desk(kafka.bootstrap_servers, topic)


@pytest.mark.thorough
def test_letters_are_listed_newest_last(desk: Desk) -> None:
    assert f"no dead letters in topic {desk.topics['dead']}" in desk.run("list")
    desk.bury(3)
    desk.bury(4)
    rows = desk.listed()
    assert [row["offset"] for row in rows] == [3, 4]
    assert {name: rows[0][name] for name in ("topic", "partition", "reason", "bytes", "cut", "replayed")} == {
        "topic": desk.topics["flow"],
        "partition": 1,
        "reason": "reason 3",
        "bytes": 9,
        "cut": None,
        "replayed": False,
    }
    assert rows[0]["written"] == 1_700_000_000_003
    assert abs(rows[0]["time"] - time.time() * 1000) < 60_000
    assert [row["offset"] for row in desk.listed("--limit", "1")] == [4]
    assert [row["offset"] for row in desk.listed("--offset", "3")] == [3]
    assert "reason 4" in desk.run("list")


def test_letters_go_back_once(desk: Desk) -> None:
    desk.bury(3, 4)
    desk.bury(0, kind="node", partition=0, value=b"{}")
    assert desk.run("replay", "--dry-run").endswith("3 letters to be sent back, 0 cannot be\n")
    assert desk.sent_back() == []
    assert desk.run("replay") == "3 letters sent back, 0 cannot be\n"
    assert desk.sent_back() == [(b"key", b"poison")] * 2
    assert desk.sent_back("node", 0) == [(b"key", b"{}")]
    assert desk.run("replay") == "0 letters sent back, 0 cannot be\n"
    assert all(row["replayed"] for row in desk.listed())
    desk.bury(5)
    assert desk.run("replay") == "1 letter sent back, 0 cannot be\n"
    assert len(desk.sent_back()) == 3
    assert desk.run("replay", "--again") == "4 letters sent back, 0 cannot be\n"
    assert len(desk.sent_back()) == 6


@pytest.mark.thorough
def test_letters_can_be_chosen_by_where_they_came_from(desk: Desk) -> None:
    desk.bury(3, 4, 5)
    chosen = ("--topic", desk.topics["flow"], "--partition", "1", "--offset", "4")
    assert desk.run("replay", *chosen) == "1 letter sent back, 0 cannot be\n"
    assert "1 had been sent back before (--again)" in desk.run("replay", *chosen)
    assert [row["replayed"] for row in desk.listed()] == [False, True, False]
    assert "has no such letter" in desk.run("replay", "--offset", "99", code=1)
    assert desk.run("replay") == "2 letters sent back, 0 cannot be, 1 had been sent back before (--again)\n"
    assert len(desk.sent_back()) == 3


@pytest.mark.thorough
def test_a_letter_that_was_cut_stays(desk: Desk) -> None:
    desk.bury(3, value=random.Random(1).randbytes(2_000_000))
    desk.bury(4)
    out = desk.run("replay", code=1)
    assert f"not sent: {desk.topics['flow']}-1 offset 3: only 100,003 of its 2000003 bytes were kept" in out
    assert out.endswith("1 letter sent back, 1 cannot be\n")
    assert desk.sent_back() == [(b"key", b"poison")]
    assert "cut" in desk.run("list")
    assert [(row["replayed"], row["fault"] is None) for row in desk.listed()] == [
        (False, False),
        (True, True),
    ]


def test_a_letter_that_names_another_topic_or_a_partition_that_is_not_there_stays(desk: Desk) -> None:
    desk.bury(1, kind="dead", partition=0)
    desk.bury(2, partition=7)
    out = desk.run("replay", code=1)
    assert "neither --node-topic nor --flow-topic" in out
    assert "has 3 partitions now" in out


@pytest.mark.thorough
def test_no_broker_is_one_clear_line(desk: Desk) -> None:
    for action in ("list", "replay"):
        out = desk.run(action, code=1, servers="127.0.0.1:1")
        assert out.startswith("lineage: no Kafka broker answers at 127.0.0.1:1")
        assert len(out.splitlines()) == 1

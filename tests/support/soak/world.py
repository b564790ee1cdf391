"""Topics with applications in them, and `lineage consume` processes that write them into stores.

Everything is a real process, known by its pid; what one of them says is in a file of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import OffsetSpec

from tests.support.soak.applications import FLOW_PARTITIONS, NODE_PARTITIONS, Application, Sent
from tests.support.soak.servers import Servers

ROOT = Path(__file__).parents[3]
DEADLINE_S = 480.0


class Member:
    """One process of the command line, and what it says."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], log: Path) -> None:
        self.log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self) -> None:
        """Return once it has ended."""
        wait_until(lambda: not self.is_alive)

    def kill(self) -> None:
        """SIGKILL, and wait; nothing if it has ended."""
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """SIGTERM, and wait."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def said(self, characters: int = 3_000) -> str:
        lines = self.log.read_text(errors="replace").splitlines(keepends=True)
        # What a process that is aborted says of its modules would fill all of it.
        return "".join(line for line in lines if not line.startswith("Extension modules:"))[-characters:]


class World:
    """Topics of one test, the stores beside them, and everybody who reads and writes there."""

    def __init__(self, servers: Servers, folder: Path) -> None:
        self.servers, self.folder, name = servers, folder, servers.new_name()
        self.node_topic, self.flow_topic = f"node-{name}", f"flow-{name}"
        self.dead_letter_topic, self.group = f"dead-{name}", f"group-{name}"
        partitions = {self.node_topic: NODE_PARTITIONS, self.flow_topic: FLOW_PARTITIONS}
        for topic, number in {**partitions, self.dead_letter_topic: 1}.items():
            servers.broker.create_topic(topic, number)
        self.places = [
            TopicPartition(topic, at) for topic, number in partitions.items() for at in range(number)
        ]
        self.applications: list[Application] = []
        self.poison: set[bytes] = set()
        self.members: list[Member] = []
        self._undelivered = 0
        self._counting = threading.Lock()
        self._producer = Producer(
            {
                "bootstrap.servers": servers.broker.servers,
                "acks": "all",
                "linger.ms": 5,
                "compression.type": "zstd",
                # A broker that is killed comes back within half a minute.
                "message.timeout.ms": 300_000,
                "reconnect.backoff.max.ms": 1_000,
                "log_level": 0,
                "error_cb": lambda _error: None,
            }
        )

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.kill()

    # -- messages ------------------------------------------------------------------------------------

    def send(self, sent: Sent) -> None:
        topic = self.node_topic if sent.is_event else self.flow_topic
        with self._counting:
            self._undelivered += 1
        self._producer.produce(topic, sent.value, partition=sent.partition, on_delivery=self._on_delivery)
        self._producer.poll(0)

    def send_poison(self, partition: int) -> None:
        """What nobody can read; the dead letters must have it."""
        value = b"poison %d" % len(self.poison)
        self.poison.add(value)
        self.send(Sent(is_event=False, partition=partition, value=value))

    def flush(self) -> None:
        """Return once the broker has every message."""
        self._producer.flush(DEADLINE_S)
        assert not self._undelivered, f"{self._undelivered} messages did not reach the broker"

    def _on_delivery(self, error: Any, _message: object) -> None:
        if error is None:
            with self._counting:
                self._undelivered -= 1

    # -- processes -----------------------------------------------------------------------------------

    def start(self, *command: str, store: str = "flows", group: str = "", **settings: object) -> Member:
        """A process of the command line, by default `lineage consume`, that knows all addresses."""
        chosen = {
            "home": self.folder / "home",
            "store": self.folder / store,
            "kafka_bootstrap_servers": self.servers.broker.servers,
            "node_topic": self.node_topic,
            "flow_topic": self.flow_topic,
            "dead_letter_topic": self.dead_letter_topic,
            "consumer_group": group or self.group,
            "neo4j_uri": self.servers.graph.uri,
            "batch_max_seconds": 0.3,
            "metrics": False,
            **settings,
        }
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LINEAGE_")}
        environment |= {f"LINEAGE_{name.upper()}": str(value) for name, value in chosen.items()}
        environment["PYTHONFAULTHANDLER"] = "1"
        member = Member(
            command or ("lineage_service.cli.main", "consume"),
            environment,
            self.folder / f"process-{len(self.members)}.log",
        )
        self.members.append(member)
        return member

    # -- states --------------------------------------------------------------------------------------

    def lag(self, group: str = "") -> dict[tuple[str, int], tuple[int, int]]:
        """Where the group is not at the end: (committed, end) by topic partition. Asked of the broker."""
        admin = self.servers.broker.admin
        ends = admin.list_offsets({place: OffsetSpec.latest() for place in self.places}, request_timeout=60)
        asked = ConsumerGroupTopicPartitions(group or self.group)
        [held] = admin.list_consumer_group_offsets([asked], request_timeout=60).values()
        committed = {(at.topic, at.partition): at.offset for at in held.result(20).topic_partitions or ()}
        found = {}
        for place, future in ends.items():
            end, at = future.result(20).offset, committed.get((place.topic, place.partition), 0)
            if at < end:
                found[place.topic, place.partition] = at, end
        return found

    def has_no_lag(self, *groups: str) -> bool:
        try:
            return not any(self.lag(group) for group in groups or (self.group,))
        except KafkaException:
            return False

    def members_of_group(self) -> set[str]:
        """Ids of the group's members. One that left, or was thrown out, comes back with another.

        None while the broker has not yet chosen who coordinates the group.
        """
        admin = self.servers.broker.admin  # kept until the answer is there
        [asked] = admin.describe_consumer_groups([self.group]).values()
        try:
            return {member.member_id for member in asked.result(20).members}
        except KafkaException:
            return set()

    def dead_letters(self) -> set[bytes]:
        """Values of all dead letters."""
        reader = KafkaConsumer({"bootstrap.servers": self.servers.broker.servers, "group.id": "reader"})
        place = TopicPartition(self.dead_letter_topic, 0, 0)
        try:
            _, end = reader.get_watermark_offsets(place, timeout=60)
            reader.assign([place])
            found: list[Any] = []
            wait_until(lambda: found.extend(reader.consume(1_000, 0.2)) or len(found) >= end)
            return {each.value() for each in found}
        finally:
            reader.close()


def wait_until(is_there: Callable[[], bool], *members: Member, deadline_s: float = DEADLINE_S) -> None:
    """Raises AssertionError with what the processes said if the state does not come, or one of them ends."""
    deadline = time.monotonic() + deadline_s
    while not is_there():
        ended = [member for member in members if not member.is_alive]
        if ended or time.monotonic() > deadline:
            why = "a process ended" if ended else f"the state did not come within {deadline_s:g} s"
            for member in members if not ended else ():
                member.signal(signal.SIGABRT)  # it says where each of its threads is, and ends
                member.process.wait()
            said = "\n".join(f"{each.log.name} said:\n{each.said()}" for each in ended or members)
            raise AssertionError(f"{why}\n{said}")
        time.sleep(0.05)

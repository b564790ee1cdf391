"""A real `lineage consume` beside a real Kafka and a flow store, and what it has stored."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from lineage_service.decode.batches import source_of
from lineage_service.ingest.consumer import Consumer
from lineage_service.ingest.gathered_messages import Limits
from lineage_service.kafka.dead_letters import KafkaDeadLetters
from lineage_service.kafka.group_member import KafkaSubscription
from lineage_service.kafka.subscription import Owner
from lineage_service.settings import Settings
from lineage_service.store.flow_store import DeltaFlowStore
from spark_agent import contract
from tests.support.flow_store_suite import rows
from tests.support.lineage_messages import APP, block, event

FLOW_PARTITIONS = 4


DEADLINE_S = 240.0


class Bench:
    """Topics, a group and a store of one test."""

    def __init__(self, servers: str, name: str, folder: Path) -> None:
        self.servers, self.folder, self.group = servers, folder, f"group-{name}"
        self.node_topic, self.flow_topic = f"node-{name}", f"flow-{name}"
        self.dead_letter_topic = f"dead-{name}"
        self.processes: list[subprocess.Popen[str]] = []
        self.create(self.node_topic, 2)
        self.create(self.flow_topic, FLOW_PARTITIONS)
        self.create(self.dead_letter_topic, 1)
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 1})

    def create(self, topic: str, partitions: int, **config: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.servers})
        [made] = admin.create_topics([NewTopic(topic, partitions, config=config)]).values()
        made.result(30)

    def send_blocks(self, *blocks: bytes, partition: int = 0) -> None:
        for payload in blocks:
            self._producer.produce(self.flow_topic, payload, partition=partition)
        assert self._producer.flush(30) == 0

    def send_bombs(self, codec: str, *values: bytes, topic: str = "", partition: int = 0) -> None:
        """Values that together make one small batch, however large they are."""
        producer = Producer(
            {
                "bootstrap.servers": self.servers,
                "compression.type": codec,
                "message.max.bytes": 1_000_000_000,
                "queue.buffering.max.kbytes": 2_000_000,
                "batch.size": 1_000_000_000,
                "linger.ms": 500 if len(values) > 1 else 0,
            }
        )
        for value in values:
            producer.produce(topic or self.flow_topic, value, partition=partition)
        assert producer.flush(30) == 0

    def send_events(self, *events: bytes, application_id: str = APP) -> None:
        for message in events:
            self._producer.produce(self.node_topic, message, key=application_id.encode())
        assert self._producer.flush(30) == 0

    def consume(self, *flags: str, **settings: object) -> subprocess.Popen[str]:
        """`lineage consume` as a process."""
        chosen = {
            "home": self.folder / "home",
            "store": self.folder / "flows",
            "kafka_bootstrap_servers": self.servers,
            "node_topic": self.node_topic,
            "flow_topic": self.flow_topic,
            "dead_letter_topic": self.dead_letter_topic,
            "consumer_group": self.group,
            "batch_max_seconds": 0.2,
            **settings,
        }
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LINEAGE_")}
        environment |= {f"LINEAGE_{name.upper()}": str(value) for name, value in chosen.items()}
        process = subprocess.Popen(
            [sys.executable, "-m", "lineage_service.cli.main", "consume", *flags],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.processes.append(process)
        return process

    @property
    def store(self) -> DeltaFlowStore:
        return DeltaFlowStore(self.folder / "flows")

    def source(self) -> str:
        """What the store calls the first partition of the flow topic: by the topic's id, whoever reads."""
        admin = AdminClient({"bootstrap.servers": self.servers})
        [described] = admin.describe_topics(TopicCollection([self.flow_topic])).values()
        return source_of(str(described.result(30).topic_id), self.flow_topic, 0)

    def member(self, name: str = "flows") -> Consumer:
        """A consumer in this process."""

        def subscribe(owner: Owner) -> KafkaSubscription:
            return KafkaSubscription(self.servers, self.group, [self.node_topic, self.flow_topic], owner)

        return Consumer(
            subscribe,
            DeltaFlowStore(self.folder / name),
            None,
            KafkaDeadLetters(self.servers, self.dead_letter_topic),
            group=self.group,
            node_topic=self.node_topic,
            limits=Limits(max_bytes=10**6, max_seconds=0.1),
        )

    def committed(self) -> dict[int, int]:
        """What the group has committed of the flow topic."""
        partitions = [TopicPartition(self.flow_topic, partition) for partition in range(FLOW_PARTITIONS)]
        with contextlib.closing(self.reader(self.group)) as reader:
            found = reader.committed(partitions, timeout=60)
        return {each.partition: each.offset for each in found if each.offset >= 0}

    def reader(self, group: str) -> Any:
        return KafkaConsumer(
            {"bootstrap.servers": self.servers, "group.id": group, "enable.auto.commit": False}
        )

    def dead_letters(self, count: int) -> list[Any]:
        with contextlib.closing(self.reader("reader")) as reader:
            reader.assign([TopicPartition(self.dead_letter_topic, 0, 0)])
            found: list[Any] = []

            def are_there() -> bool:
                found.extend(reader.consume(100, 0.2))
                return len(found) >= count

            wait_until(are_there)
            return found


def wait_until(is_there: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not is_there():
        if time.monotonic() > deadline or (process is not None and process.poll() is not None):
            if process is not None:
                process.kill()
            said = process.stdout.read() if process is not None and process.stdout is not None else "nothing"
            pytest.fail(f"the state did not come; the process said: {said}")
        time.sleep(0.05)


def output_of(process: subprocess.Popen[str], code: int) -> str:
    out, _ = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == code, out
    return out


def bench_of(kafka: Any, folder: Path, topic: str) -> Iterator[Bench]:
    """A bench, and after it the end of what it started."""
    made = Bench(kafka.bootstrap_servers, topic, folder)
    yield made
    for process in made.processes:
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def some_blocks(run: int, count: int, partition: int = 0) -> list[bytes]:
    return [block(run, seq, split=partition, columns={"in": [seq, run + seq, 7]}) for seq in range(count)]


def flows_of(run: int, count: int) -> list[tuple[int, int, int]]:
    """(run, out_pos, in_pos) of `some_blocks`: the oracle."""
    return sorted((run, at, value) for seq in range(count) for at, value in enumerate([seq, run + seq, 7]))


def stored_flows(store: DeltaFlowStore) -> list[tuple[int, int, int]]:
    return sorted((row["run"], row["out_pos"], row["in_pos"]) for row in rows(store, "flows"))


def manifest(run: int, blocks: int, **fields: Any) -> bytes:
    return event(contract.RUN_COMMITTED, run=run, blocks=blocks, **fields)


def settings_of(bench: Bench, **settings: Any) -> Settings:
    return Settings(
        home=bench.folder / "home",
        store=str(bench.folder / "flows"),
        kafka_bootstrap_servers=bench.servers,
        node_topic=bench.node_topic,
        flow_topic=bench.flow_topic,
        dead_letter_topic=bench.dead_letter_topic,
        consumer_group=bench.group,
        **settings,
    )


def metrics_url(process: subprocess.Popen[str]) -> str:
    """From the first lines that it logs."""
    assert process.stdout is not None
    for line in process.stdout:
        if "metrics are at " in line:
            return line.split("metrics are at ")[1].strip()
    pytest.fail("it ended without a word on metrics")


@contextmanager
def serving(bench: Bench, **changes: Any) -> Iterator[str]:
    """`lineage serve` as a process; its URL."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LINEAGE_")}
    chosen = settings_of(bench, api_port=0, **changes).model_dump(exclude_defaults=True)
    environment |= {f"LINEAGE_{name.upper()}": str(value) for name, value in chosen.items()}
    command = [sys.executable, "-m", "lineage_service.cli.main", "serve"]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    address = bench.folder / "home" / "api.json"
    try:
        wait_until(address.exists, process)
        yield json.loads(address.read_text())["url"]
    finally:
        process.kill()
        process.communicate()

"""A Kafka of the benchmark's own, from the project's stack, and what a run left in it. Nobody consumes."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from lineage_service.cli.stack.down import stop
from lineage_service.cli.stack.up import start
from lineage_service.settings import Settings
from spark_agent import contract
from spark_agent.contract.event_checks import decode_event

TOPICS = (contract.NODE_TOPIC, contract.FLOW_TOPIC)
Ends = Mapping[tuple[str, int], int]
"""(topic, partition) -> the offset after the last message."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What one application says that it sent: accepted runs, their blocks, and how many of them were lost."""

    runs: int
    blocks: int
    dropped: int


class Broker:
    """Started when it is made; `stop` ends it. Its data is in `home`, the jars in `jars`."""

    def __init__(self, home: Path, jars: Path) -> None:
        self._home = home.absolute()
        state = start(Settings(home=self._home), only="kafka", jars=jars)
        kafka = state.servers["kafka"]
        self.pid = kafka.pid
        self.version = kafka.version
        self.bootstrap_servers = kafka.addresses["bootstrap_servers"]

    def stop(self) -> None:
        stop(self._home)

    def stored_bytes(self) -> int:
        """Size of all messages as they came: compressed, with the protocol's own bytes around them."""
        data = self._home / "kafka" / "data"
        return sum(log.stat().st_size for topic in TOPICS for log in data.glob(f"{topic}-*/*.log"))

    def ends(self) -> Ends:
        consumer = self._consumer()
        try:
            return {
                (topic, partition): consumer.get_watermark_offsets(
                    TopicPartition(topic, partition), timeout=10
                )[1]
                for topic in TOPICS
                for partition in consumer.list_topics(topic, timeout=10).topics[topic].partitions
            }
        finally:
            consumer.close()

    def sent_since(self, before: Ends) -> Sent:
        """What the one application has counted that ran since `before`."""
        counters = [
            event["counters"]
            for event in map(decode_event, self._messages(contract.NODE_TOPIC, before))
            if event["type"] == contract.APPLICATION_ENDED
        ]
        if len(counters) != 1:
            raise RuntimeError(f"{len(counters)} applications have ended, one was run")
        return Sent(*(counters[0][name] for name in ("runs", "blocks", "dropped")))

    def flows_since(self, before: Ends) -> int:
        """Flows of the blocks since `before`, see `flows_of`."""
        return flows_of(map(contract.decode_block, self._messages(contract.FLOW_TOPIC, before)))

    def _messages(self, topic: str, before: Ends) -> Iterator[bytes]:
        left = {
            partition: end - before[topic, partition]
            for (name, partition), end in self.ends().items()
            if name == topic and end > before[topic, partition]
        }
        consumer = self._consumer()
        try:
            consumer.assign([TopicPartition(topic, number, before[topic, number]) for number in left])
            while any(count > 0 for count in left.values()):
                message = consumer.poll(30)
                if message is None or message.error() is not None:
                    raise RuntimeError(f"messages of {topic} do not come: {left}")
                left[message.partition()] -= 1
                yield message.value()
        finally:
            consumer.close()

    def _consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "group.id": uuid.uuid4().hex,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )


def flows_of(blocks: Iterator[contract.Block]) -> int:
    """The flows of the widest node of each run, added up.

    So a word that a flatMap made and a combine took is one flow and not two: the strict way to count, where
    the bytes for one flow are to be few.
    """
    flows: Counter[tuple[int, int]] = Counter()
    for block in blocks:
        columns = block.columns
        if block.relation in (contract.COUNTS, contract.SPANS):
            flows[block.run, block.node] += sum(columns["count"])
        elif block.relation == contract.IDS:
            flows[block.run, block.node] += sum(columns.get("count", [1] * len(columns["in"])))
        elif block.relation in (contract.POSITIONS, contract.GATHER):
            flows[block.run, block.node] += len(columns["in"])
        elif block.relation == contract.CODES:
            flows[block.run, block.node] += len(columns["code"])
    widest: dict[int, int] = {}
    for (run, _node), count in flows.items():
        widest[run] = max(widest.get(run, 0), count)
    return sum(widest.values())

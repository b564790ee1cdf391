"""What a job sent, in a pair of topics of its own, so that many groups can consume it from the beginning.

`Job` runs the real job with lineage into the pair; `grow` writes one captured application n times as
large: n times its runs, under new numbers, in one application. Nobody consumes here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from lineage_service.kafka.topics import create_topics
from perf.capture.broker import Ends
from perf.capture.cases import WORKLOADS, Case
from perf.capture.drivers import ROOT, JobError
from spark_agent import contract
from spark_agent.contract.event_checks import decode_event

_DEADLINE_S = 30.0
_JOB_S = 3_600
_POLL_S = 0.2
#: So often a topic must be silent after its job is over before nothing more is expected.
_QUIET_POLLS = 25


@dataclass(frozen=True, slots=True)
class Topics:
    """The pair of topics that carries one application, at a broker."""

    bootstrap_servers: str
    name: str

    @property
    def node(self) -> str:
        return f"{contract.NODE_TOPIC}-{self.name}"

    @property
    def flow(self) -> str:
        return f"{contract.FLOW_TOPIC}-{self.name}"

    def create(self) -> None:
        partitions = {self.node: contract.NODE_PARTITIONS, self.flow: contract.FLOW_PARTITIONS}
        create_topics(self.bootstrap_servers, partitions)
        consumer, deadline = self._client("look"), time.monotonic() + _DEADLINE_S
        try:  # a busy broker tells of a topic a while after it has made it
            while any(
                len(consumer.list_topics(topic, timeout=_DEADLINE_S).topics[topic].partitions) < count
                for topic, count in partitions.items()
            ):
                if time.monotonic() > deadline:
                    raise JobError(f"the broker does not tell of {self.flow}, which it has made")
                time.sleep(_POLL_S)
        finally:
            consumer.close()

    def stored_bytes(self, data: Path) -> int:
        """What the broker with its logs in `data` keeps of both topics: compressed, one copy."""
        return sum(
            log.stat().st_size
            for topic in (self.node, self.flow)
            for log in data.glob(f"{topic}-[0-9]*/*.log")
            if log.parent.name.removeprefix(f"{topic}-").isdecimal()
        )

    def ends(self) -> Ends:
        """Where there is any message."""
        consumer = self._client("look")
        try:
            places = [TopicPartition(topic, number) for topic, number in self._places(consumer)]
            ends = {
                (place.topic, place.partition): consumer.get_watermark_offsets(place, timeout=_DEADLINE_S)[1]
                for place in places
            }
        finally:
            consumer.close()
        return {place: end for place, end in ends.items() if end}

    def wait_until_committed(self, group: str, ends: Ends, timeout_s: float) -> None:
        """Until the group's offsets are at `ends`: all stores have everything. Raises JobError."""
        consumer, deadline = self._client(group), time.monotonic() + timeout_s
        try:
            while time.monotonic() < deadline:
                positions = consumer.committed(
                    [TopicPartition(*place) for place in ends], timeout=_DEADLINE_S
                )
                if all(position.offset >= ends[position.topic, position.partition] for position in positions):
                    return
                time.sleep(0.1)
        finally:
            consumer.close()
        raise JobError(f"group {group} did not come to the end of {self.flow} in {timeout_s:g} s")

    def messages(self) -> Iterator[Any]:
        """Every message of both topics, each partition in its order."""
        consumer, left = self._client("look"), self.ends()
        try:
            consumer.assign([TopicPartition(*place, 0) for place in left])
            count = sum(left.values())
            while count:
                message = consumer.poll(_DEADLINE_S)
                if message is None or message.error() is not None:
                    raise JobError(f"messages of {self.flow} do not come: {count} are missing")
                count -= 1
                yield message
        finally:
            consumer.close()

    def wait_for_end(self, is_over: Callable[[], bool]) -> dict[str, Any]:
        """The event with which the application in these topics ended, as soon as it is there.

        Raises JobError when there is none although `is_over`.
        """
        consumer = self._client("look")
        try:
            numbers = consumer.list_topics(self.node, timeout=_DEADLINE_S).topics[self.node].partitions
            consumer.assign([TopicPartition(self.node, number, 0) for number in numbers])
            quiet = 0
            while quiet < _QUIET_POLLS:
                message = consumer.poll(_POLL_S)
                if message is None or message.error() is not None:
                    quiet += is_over()
                    continue
                event = json.loads(message.value())
                if event["type"] == contract.APPLICATION_ENDED:
                    return dict(event)
        finally:
            consumer.close()
        raise JobError(f"no application has ended in {self.node}")

    def _places(self, consumer: Consumer) -> list[tuple[str, int]]:
        return [
            (topic, number)
            for topic in (self.node, self.flow)
            for number in consumer.list_topics(topic, timeout=_DEADLINE_S).topics[topic].partitions
        ]

    def _client(self, group: str) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """One application in its topics. `ended_at` is when it said that it ended, Unix time in seconds."""

    topics: Topics
    application_id: str
    ended_at: float
    ends: Ends
    input_bytes: int
    output: Path | None = None


class Job:
    """A job under way, run as its user does, with lineage into `topics`."""

    def __init__(
        self,
        topics: Topics,
        case: Case,
        inputs: Sequence[Path],
        *,
        is_detailed: bool,
        cores: int,
        memory: str,
        folder: Path,
    ) -> None:
        self.topics = topics
        self.output = folder / f"output-{topics.name}"
        self.input_bytes = sum(path.stat().st_size for path in inputs)
        self._log = folder / f"job-{topics.name}.log"
        conf = {
            "spark.ui.enabled": "false",
            "spark.driver.memory": memory,
            "spark.lineage.enabled": "true",
            "spark.lineage.detailed": str(is_detailed).lower(),
            "spark.lineage.kafka.bootstrap.servers": topics.bootstrap_servers,
            # Not what is measured: on a busy machine the job rather waits than leaves something out.
            "spark.lineage.delivery.timeout": "60",
            "spark.lineage.topic.node": topics.node,
            "spark.lineage.topic.flow": topics.flow,
        }
        submit = [str(Path(sys.executable).with_name("spark-submit")), "--master", f"local[{cores}]"]
        submit += [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
        own = {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        with self._log.open("wb") as output:
            self._child = subprocess.Popen(
                [*submit, str(WORKLOADS / case.job), *case.arguments(list(inputs), self.output)],
                cwd=folder,
                env={**os.environ, **own},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def captured(self) -> Captured:
        """Waits until the application says that it has ended, and no longer. Raises JobError."""
        try:
            return captured(self.topics, self.input_bytes, self.output, self._is_over)
        except JobError as error:
            self.stop()
            raise JobError(f"{error}; see {self._log}") from None

    def wait(self) -> None:
        """Until its processes are gone. Raises JobError if it failed."""
        if self._child.wait(_JOB_S):
            raise JobError(f"the job failed; see {self._log}")

    def stop(self) -> None:
        if not self._is_over():
            self._child.terminate()
            self._child.wait()

    def _is_over(self) -> bool:
        return self._child.poll() is not None


def captured(
    topics: Topics,
    input_bytes: int,
    output: Path | None = None,
    is_over: Callable[[], bool] = lambda: True,
) -> Captured:
    """The application in the topics. Raises JobError if it does not end."""
    ended = topics.wait_for_end(is_over)
    return Captured(
        topics=topics,
        application_id=ended["application_id"],
        ended_at=ended["time"] / 1000,
        ends=topics.ends(),
        input_bytes=input_bytes,
        output=output,
    )


# -- the same job, n times as large ------------------------------------------------------------------


def grow(small: Captured, times: int, topics: Topics) -> Captured:
    """Write the application with `times` its runs into `topics`, as a longer input would have made it."""
    blocks, events = [], []
    for message in small.topics.messages():
        if message.topic() == small.topics.node:
            events.append(decode_event(message.value()))
        else:
            blocks.append(contract.decode_block(message.value()))
    producer = Producer(
        {
            "bootstrap.servers": topics.bootstrap_servers,
            "compression.type": "zstd",
            "compression.level": 1,
            "linger.ms": 50,
            "batch.size": 1_000_000,
            "enable.idempotence": True,
        }
    )
    for copy in range(times):
        for block in blocks_of_copy(blocks, copy):
            while True:
                try:
                    partition = block.split % contract.FLOW_PARTITIONS
                    producer.produce(topics.flow, contract.encode_block(block), partition=partition)
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.poll(0)
    key = small.application_id.encode()
    for event in events_of_copies(events, times):
        message = json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode()
        producer.produce(topics.node, message, key=key)
    if producer.flush(_DEADLINE_S):
        raise JobError(f"the broker did not take all messages of {topics.flow}")
    return captured(topics, small.input_bytes * times)


#: No application has so many splits of a node before it is grown.
_SPLITS = 300


def _run_of(run: int, copy: int) -> int:
    """Another number for each copy; the numbers of one application are random below 2^53, so none meet."""
    return run ^ copy


def blocks_of_copy(blocks: Sequence[contract.Block], copy: int) -> Iterator[contract.Block]:
    """The blocks of the runs that stand for `blocks` in a copy; where they name runs, those of the copy."""
    for block in blocks:
        columns = dict(block.columns)
        if "run" in columns:
            columns["run"] = [run and _run_of(run, copy) for run in columns["run"]]
        split = block.split + copy * _SPLITS
        yield replace(block, run=_run_of(block.run, copy), split=split, columns=columns)


def events_of_copies(events: Sequence[Mapping[str, Any]], times: int) -> list[dict[str, Any]]:
    """The events of an application with `times` the runs, numbered anew, its end last."""
    once = [
        event for event in events if event["type"] not in (contract.RUN_COMMITTED, contract.APPLICATION_ENDED)
    ]
    runs = [event for event in events if event["type"] == contract.RUN_COMMITTED]
    end = next(event for event in events if event["type"] == contract.APPLICATION_ENDED)
    copies = [
        {**event, "run": _run_of(event["run"], copy), "split": event["split"] + copy * _SPLITS}
        for copy in range(times)
        for event in runs
    ]
    counters = {**end["counters"], **{name: times * end["counters"][name] for name in ("runs", "blocks")}}
    every = [*once, *copies, {**end, "counters": counters}]
    return [{**event, "event": number} for number, event in enumerate(every)]

"""Two flow stores in one consumer group of a real Kafka."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from lineage_service.decode.batches import Message
from lineage_service.kafka.errors import TRANSIENT_ERRORS
from lineage_service.kafka.group_claim import claim
from lineage_service.kafka.group_member import KafkaSubscription
from lineage_service.kafka.group_owner import GroupTakenError, memory_of
from lineage_service.kafka.subscription import Assignment
from lineage_service.store.flow_store import DeltaFlowStore
from tests.support.consumers import (
    Bench,
    bench_of,
    flows_of,
    output_of,
    some_blocks,
    stored_flows,
    wait_until,
)


@pytest.fixture
def bench(kafka: Any, tmp_path: Path, topic: str) -> Iterator[Bench]:
    yield from bench_of(kafka, tmp_path, topic)


def owner_in_kafka(bench: Bench) -> tuple[int, str]:
    """The offset that the group has in the first partition of the node topic, and what stands with it."""
    with contextlib.closing(bench.reader(bench.group)) as reader:
        try:
            [found] = reader.committed([TopicPartition(bench.node_topic, 0)], timeout=60)
        except KafkaException as error:
            if error.args[0].code() not in TRANSIENT_ERRORS:
                raise
            return -1, ""
    return found.offset, found.metadata or ""


def commit_as_before(bench: Bench, topic: str, *offsets: int) -> None:
    """What a version that knew no owners left in the group."""
    with contextlib.closing(bench.reader(bench.group)) as client:
        places = [TopicPartition(topic, number, offset) for number, offset in enumerate(offsets)]

        def is_committed() -> bool:
            try:
                client.commit(offsets=places, asynchronous=False)
            except KafkaException as error:
                if error.args[0].code() not in TRANSIENT_ERRORS:
                    raise
                return False
            return True

        wait_until(is_committed)


def consuming(bench: Bench, *flags: str, **settings: object) -> subprocess.Popen[str]:
    """A consumer whose store stands in the group."""
    process = bench.consume(*flags, **settings)
    folder = Path(str(settings.get("store", bench.folder / "flows")))

    def is_claimed() -> bool:
        is_made = (folder / "events" / "_delta_log").exists()
        return is_made and owner_in_kafka(bench)[1] == memory_of(DeltaFlowStore(folder).store_id)

    wait_until(is_claimed, process)
    return process


def members_of(bench: Bench) -> int:
    admin = AdminClient({"bootstrap.servers": bench.servers})
    [asked] = admin.describe_consumer_groups([bench.group]).values()
    return len(asked.result(30).members)


def stop(process: subprocess.Popen[str]) -> str:
    process.terminate()
    return output_of(process, 0)


def test_a_second_store_in_the_group_is_refused_and_the_first_has_everything(bench: Bench) -> None:
    first = consuming(bench)
    refused = output_of(bench.consume(store=bench.folder / "other"), 1)
    assert f"consumer group {bench.group} belongs to another flow store" in refused
    assert "--consumer-group" in refused
    assert "Traceback" not in refused
    for partition in range(4):
        bench.send_blocks(*some_blocks(partition + 1, 5, partition), partition=partition)
    wait_until(lambda: len(stored_flows(bench.store)) == 60, first)
    said = stop(first)
    assert said.splitlines()[0].endswith(
        f"from Kafka at {bench.servers} as group {bench.group}, into the store {bench.folder / 'flows'} "
        "and no Neo4j"
    )
    assert stored_flows(DeltaFlowStore(bench.folder / "other")) == []
    assert output_of(bench.consume(store=bench.folder / "other"), 1).count("belongs to another") == 1


@pytest.mark.thorough
def test_the_same_store_comes_again_alone_beside_another_process_and_from_another_place(
    bench: Bench,
) -> None:
    first = consuming(bench)
    second = bench.consume()
    wait_until(lambda: members_of(bench) == 2, second)
    bench.send_blocks(*some_blocks(1, 5))
    wait_until(lambda: stored_flows(bench.store) == flows_of(1, 5), first)
    assert second.poll() is None
    stop(second)
    stop(first)
    moved = bench.folder / "moved"
    (bench.folder / "flows").rename(moved)
    bench.send_blocks(*some_blocks(2, 5))
    third = bench.consume(store=moved)
    wait_until(lambda: len(stored_flows(DeltaFlowStore(moved))) == 30, third)
    stop(third)


@pytest.mark.thorough
def test_a_group_of_an_earlier_version_is_taken_over(bench: Bench) -> None:
    commit_as_before(bench, bench.node_topic, 0, 0)
    stop(consuming(bench))
    offset, memory = owner_in_kafka(bench)
    assert (offset, memory) == (0, memory_of(bench.store.store_id))
    assert "belongs to another" in output_of(bench.consume(store=bench.folder / "other"), 1)


@pytest.mark.thorough
def test_a_group_is_given_to_another_store_on_demand_and_that_one_gets_everything(bench: Bench) -> None:
    bench.send_blocks(*some_blocks(1, 5))
    first = consuming(bench)
    wait_until(lambda: stored_flows(bench.store) == flows_of(1, 5), first)
    other = bench.folder / "other"
    busy = output_of(bench.consume("--reset-group", store=other), 1)
    assert f"somebody consumes in group {bench.group}" in busy
    assert first.poll() is None
    stop(first)
    second = consuming(bench, "--reset-group", store=other)
    wait_until(lambda: stored_flows(DeltaFlowStore(other)) == flows_of(1, 5), second)
    stop(second)
    assert "belongs to another" in output_of(bench.consume(), 1)


class _Reader:
    def start_at(self, place: Assignment) -> int | None:
        return None

    def revoked(self, topic: str, partition: int) -> None: ...


@pytest.mark.thorough
def test_of_two_stores_that_join_at_the_same_moment_one_stays(bench: Bench) -> None:
    topics = [bench.node_topic, bench.flow_topic]
    for name in ("one", "two"):  # both look before either is there
        claim(bench.servers, bench.group, topics, name)
    members = {
        name: KafkaSubscription(bench.servers, bench.group, topics, _Reader(), store_id=name)
        for name in ("one", "two")
    }
    refused: list[str] = []
    given: list[Message] = []

    def is_settled() -> bool:
        for name, member in list(members.items()):
            try:
                given.extend(member.poll(0.05))
            except GroupTakenError:
                members.pop(name).close()
                refused.append(name)
        return len(members) == 1 and owner_in_kafka(bench)[1] == memory_of(*members)

    wait_until(is_settled)
    [(name, member)] = members.items()
    assert refused == [{"one": "two", "two": "one"}[name]]
    bench.send_blocks(*some_blocks(1, 3), partition=1)
    wait_until(lambda: given.extend(member.poll(0.05)) is None and len(given) == 3)
    member.close()


def test_the_id_stands_in_stores_of_before_and_differs_from_store_to_store(tmp_path: Path) -> None:
    ids = {DeltaFlowStore(tmp_path / name).store_id for name in ("a", "b", "a")}
    assert len(ids) == 2


@pytest.mark.thorough
def test_the_id_of_a_store_in_an_object_store_stays(bucket: str) -> None:
    first = DeltaFlowStore(f"{bucket}/flows").store_id
    assert DeltaFlowStore(f"{bucket}/flows").store_id == first != DeltaFlowStore(f"{bucket}/b").store_id

"""`lineage consume` against a real Kafka and a real flow store, as processes that are really killed."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from lineage_service.decode.batches import DeadLetter, Message
from lineage_service.kafka.dead_letters import CUT_BYTES, KafkaDeadLetters
from lineage_service.store.flow_store import DeltaFlowStore
from spark_agent import contract
from tests.support.consumers import (
    DEADLINE_S,
    FLOW_PARTITIONS,
    Bench,
    bench_of,
    flows_of,
    manifest,
    output_of,
    some_blocks,
    stored_flows,
    wait_until,
)
from tests.support.flow_store_suite import rows
from tests.support.lanes import sampled
from tests.support.lineage_messages import APP, event


@pytest.fixture
def bench(kafka: Any, tmp_path: Path, topic: str) -> Iterator[Bench]:
    yield from bench_of(kafka, tmp_path, topic)


def test_it_ends_when_the_application_is_complete(bench: Bench) -> None:
    process = bench.consume("--until-complete", APP, "--timeout", "60")
    bench.send_blocks(*some_blocks(1, 3))  # blocks before their manifest
    bench.send_events(event(contract.APPLICATION_STARTED), manifest(1, 3), manifest(2, 2))
    bench.send_events(event(contract.APPLICATION_ENDED, counters={"runs": 2}))
    wait_until(lambda: len(bench.store.events(APP)) == 4, process)
    assert process.poll() is None
    bench.send_blocks(*some_blocks(2, 2), partition=1)  # blocks after their manifest
    output_of(process, 0)
    assert stored_flows(bench.store) == flows_of(1, 3) + flows_of(2, 2)


def test_an_application_that_does_not_get_complete_is_an_error_that_says_what_is_missing(
    bench: Bench,
) -> None:
    bench.send_blocks(*some_blocks(7, 1))
    bench.send_events(manifest(7, 3), event(contract.APPLICATION_ENDED))
    out = output_of(bench.consume("--until-complete", APP, "--timeout", "3"), 1)
    missing = "missing blocks: 2, of 1 of 1 task runs (task run 7 of partition 0: 1 of 3 are stored)"
    assert f"lineage: {APP} is not complete after 3 s: {missing}" in out.splitlines()


def test_an_application_that_was_not_followed_as_a_whole_is_not_awaited(bench: Bench) -> None:
    bench.send_blocks(*some_blocks(7, 2))
    bench.send_events(manifest(7, 2), event(contract.GAP, reason="a query was not followed"))
    bench.send_events(event(contract.APPLICATION_ENDED))
    out = output_of(bench.consume("--until-complete", APP, "--timeout", "3000"), 1)
    reason = "not followed: a query was not followed"
    assert f"lineage: {APP} is not complete and cannot become so: {reason}" in out.splitlines()
    assert stored_flows(bench.store) == flows_of(7, 2)


@pytest.mark.thorough
def test_an_application_that_is_complete_already_ends_it_at_once(bench: Bench) -> None:
    bench.send_events(manifest(1, 0), event(contract.APPLICATION_ENDED))
    output_of(bench.consume("--until-complete", APP), 0)
    output_of(bench.consume("--until-complete", APP), 0)


@pytest.mark.thorough
def test_a_term_signal_commits_and_leaves(bench: Bench) -> None:
    bench.send_blocks(*some_blocks(1, 3))
    process = bench.consume()
    wait_until(lambda: bench.store.offset(bench.source()) == 3, process)
    process.send_signal(signal.SIGTERM)
    out = output_of(process, 0)
    assert "3 blocks" in out
    assert bench.committed() == {0: 3}


def test_messages_that_are_read_and_sent_twice_double_nothing(bench: Bench) -> None:
    blocks = some_blocks(1, 5)
    events = [manifest(1, 5), event(contract.APPLICATION_ENDED)]
    bench.send_blocks(*blocks)
    bench.send_events(*events)
    output_of(bench.consume("--until-complete", APP), 0)
    before = {table: rows(bench.store, table) for table in ("events", "blocks", "flows")}
    # Another group reads on, into the same store, and a producer sends all of it again.
    bench.group += "-2"
    bench.send_blocks(*blocks)
    bench.send_events(*events)
    process = bench.consume()
    wait_until(lambda: bench.store.offset(bench.source()) == 10, process)
    wait_until(lambda: len(rows(bench.store, "events")) == 4, process)
    assert {table: rows(bench.store, table) for table in ("blocks", "flows")} == {
        table: before[table] for table in ("blocks", "flows")
    }
    assert len(bench.store.events(APP)) == 2


def test_poison_becomes_dead_letters_and_the_rest_is_kept(bench: Bench) -> None:
    first, second = some_blocks(1, 2)
    bench.send_blocks(first, b"poison", second)
    bench.send_events(b"{}", manifest(1, 2), event(contract.APPLICATION_ENDED))
    out = output_of(bench.consume("--until-complete", APP), 0)
    assert stored_flows(bench.store) == flows_of(1, 2)
    assert "cannot be used" in out
    letters = {dict(letter.headers())["topic"].decode(): letter for letter in bench.dead_letters(2)}
    assert letters[bench.flow_topic].value() == b"poison"
    assert letters[bench.node_topic].value() == b"{}"
    assert b"version" in dict(letters[bench.node_topic].headers())["reason"]


def test_dead_letters_say_where_they_come_from_and_why(bench: Bench) -> None:
    poison = Message(topic="flow", partition=3, offset=17, key=b"k", value=b"poison")
    before = time.time() * 1000
    KafkaDeadLetters(bench.servers, bench.dead_letter_topic).send([DeadLetter(message=poison, reason="no ä")])
    [letter] = bench.dead_letters(1)
    headers = {name: value.decode() for name, value in letter.headers()}
    assert abs(int(headers.pop("time")) - before) < 60_000
    assert headers == {"topic": "flow", "partition": "3", "offset": "17", "reason": "no ä"}
    assert (letter.key(), letter.value()) == (b"k", b"poison")


def test_a_dead_letter_that_is_too_large_is_cut_and_says_so(bench: Bench) -> None:
    bench.dead_letter_topic += "-small"
    bench.create(bench.dead_letter_topic, 1, **{"max.message.bytes": "200000"})
    value = random.Random(1).randbytes(300_000)
    poison = Message(topic="flow", partition=0, offset=0, key=None, value=value)
    small = Message(topic="flow", partition=0, offset=1, key=None, value=b"small")
    letters = [DeadLetter(message=each, reason="why") for each in (poison, small)]
    KafkaDeadLetters(bench.servers, bench.dead_letter_topic).send(letters)
    found = {dict(letter.headers())["offset"]: letter for letter in bench.dead_letters(2)}
    assert found[b"0"].value() == value[:CUT_BYTES]
    assert dict(found[b"0"].headers())["cut"] == b"300000"
    assert found[b"1"].value() == b"small"


def test_two_members_share_the_partitions(bench: Bench) -> None:
    members = [bench.member(), bench.member()]
    threads = [threading.Thread(target=member.run) for member in members]
    for thread in threads:
        thread.start()
    try:
        sent = 0
        deadline = time.monotonic() + DEADLINE_S
        while not all(member.counters.blocks for member in members):
            assert time.monotonic() < deadline, [str(member.counters) for member in members]
            for partition in range(FLOW_PARTITIONS):
                bench.send_blocks(*some_blocks(sent, 1), partition=partition)
                sent += 1
            time.sleep(0.2)
        wait_until(lambda: len(bench.store.receipts(APP)) == sent)
    finally:
        for member in members:
            member.stop()
        for thread in threads:
            thread.join(DEADLINE_S)
    assert stored_flows(bench.store) == sorted(flow for run in range(sent) for flow in flows_of(run, 1))


def test_a_member_that_dies_is_replaced_by_the_other(bench: Bench) -> None:
    process = bench.consume()
    bench.send_blocks(*some_blocks(1, 2))
    wait_until(lambda: len(bench.store.receipts(APP)) == 2, process)
    other = bench.consume()
    process.send_signal(signal.SIGTERM)
    output_of(process, 0)
    for partition in range(FLOW_PARTITIONS):
        bench.send_blocks(*some_blocks(10 + partition, 2), partition=partition)
    wait_until(lambda: len(bench.store.receipts(APP)) == 10, other)


@pytest.mark.thorough
def test_a_store_that_was_removed_is_filled_again_when_it_is_given_the_group(bench: Bench) -> None:
    bench.send_blocks(*some_blocks(1, 3))
    bench.send_events(manifest(1, 3), event(contract.APPLICATION_ENDED))
    output_of(bench.consume("--until-complete", APP), 0)
    other = bench.folder / "other"
    assert "--reset-group" in output_of(bench.consume("--until-complete", APP, store=other), 1)
    output_of(bench.consume("--until-complete", APP, "--reset-group", store=other), 0)
    assert stored_flows(DeltaFlowStore(other)) == flows_of(1, 3)


@pytest.mark.thorough
@pytest.mark.parametrize("is_running", sampled([True, False], 2))
def test_a_topic_that_was_made_anew_is_read_from_its_beginning(bench: Bench, is_running: bool) -> None:
    bench.send_blocks(*some_blocks(1, 3))
    process = bench.consume()
    wait_until(lambda: len(bench.store.receipts(APP)) == 3, process)
    if not is_running:
        process.send_signal(signal.SIGTERM)
        output_of(process, 0)
    admin = AdminClient({"bootstrap.servers": bench.servers})
    admin.delete_topics([bench.flow_topic])[bench.flow_topic].result(30)
    wait_until(lambda: bench.flow_topic not in admin.list_topics(timeout=60).topics)
    bench.create(bench.flow_topic, FLOW_PARTITIONS)
    bench.send_blocks(*some_blocks(2, 2))
    if not is_running:
        process = bench.consume()
    wait_until(lambda: len(bench.store.receipts(APP)) == 5, process)
    assert stored_flows(bench.store) == flows_of(1, 3) + flows_of(2, 2)


@pytest.mark.thorough
def test_two_groups_that_read_the_same_topics_store_everything_once(bench: Bench) -> None:
    first = bench.group
    process = bench.consume(batch_max_bytes=2_000)
    bench.group += "-2"
    other = bench.consume(batch_max_bytes=3_000)
    for run in range(40):
        bench.send_blocks(*some_blocks(run, 8), partition=run % FLOW_PARTITIONS)
        bench.send_events(manifest(run, 8))
    for bench.group in (first, f"{first}-2"):
        wait_until(lambda: sum(bench.committed().values()) == 320, process)
    assert other.poll() is None
    assert stored_flows(bench.store) == sorted(flow for run in range(40) for flow in flows_of(run, 8))
    assert len(rows(bench.store, "events")) == 40


def test_topics_are_made_when_they_are_missing(bench: Bench, group: str) -> None:
    names = {name: f"{name}-{group}" for name in ("node_topic", "flow_topic", "dead_letter_topic")}
    bench.node_topic, bench.flow_topic = names["node_topic"], names["flow_topic"]
    process = bench.consume(**names)
    admin = AdminClient({"bootstrap.servers": bench.servers})
    wait_until(lambda: set(names.values()) <= admin.list_topics(timeout=60).topics.keys(), process)
    assert (
        len(admin.list_topics(timeout=60).topics[names["flow_topic"]].partitions) == contract.FLOW_PARTITIONS
    )


@pytest.mark.thorough
def test_a_broker_that_does_not_answer_is_one_clear_line(bench: Bench) -> None:
    started = time.monotonic()
    out = output_of(bench.consume(kafka_bootstrap_servers="127.0.0.1:1"), 1)
    first, last = out.splitlines()
    assert "from Kafka at 127.0.0.1:1 as group" in first
    assert last.startswith("lineage: no Kafka broker answers at 127.0.0.1:1")
    assert time.monotonic() - started < 20


@pytest.mark.thorough
@pytest.mark.parametrize("codec", ["zstd", "gzip", "lz4"])
def test_a_batch_that_unpacks_to_more_than_a_client_takes_is_passed_over(bench: Bench, codec: str) -> None:
    first, second, third = some_blocks(1, 3)
    bench.send_blocks(first)
    bench.send_bombs(codec, bytes(40_000_000))
    bench.send_blocks(second)
    bench.send_bombs("zstd", b"beside it", bytes(40_000_000), b"and behind")
    bench.send_blocks(third)
    bench.send_events(manifest(1, 3), event(contract.APPLICATION_ENDED))
    output_of(bench.consume("--until-complete", APP), 0)
    assert stored_flows(bench.store) == flows_of(1, 3)
    letters = {dict(letter.headers())["offset"]: dict(letter.headers()) for letter in bench.dead_letters(4)}
    assert set(letters) == {b"1", b"3", b"4", b"5"}

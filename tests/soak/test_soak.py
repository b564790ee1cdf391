"""Consumers, Kafka and Neo4j that die. One file, since its tests share servers that they may kill."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path
from random import Random, SystemRandom

import duckdb
import pytest
from neo4j import GraphDatabase, Record, Transaction

from lineage_service.errors import UnavailableError
from lineage_service.graph.application_writer import ApplicationWriter
from lineage_service.graph.neo4j_store import Neo4jGraph
from spark_agent import contract
from tests.support.graphs import ended, links_of, node, run_of, started
from tests.support.lineage_messages import block, event
from tests.support.soak.applications import FLOW_PARTITIONS, Sent, at_least_once, make
from tests.support.soak.crash import POINTS
from tests.support.soak.oracle import graph_differences, is_whole, store_differences
from tests.support.soak.servers import Servers
from tests.support.soak.storm import soak
from tests.support.soak.world import Member, World, wait_until

pytestmark = pytest.mark.thorough

#: How long things die; servers that start, the wait until no group has lag, and the comparison come on top.
SECONDS = 45.0


@pytest.mark.timeout(1800)
def test_whatever_dies_every_flow_is_stored_exactly_once(servers: Servers, tmp_path: Path) -> None:
    seed = os.environ.get("LINEAGE_SOAK_SEED") or str(SystemRandom().randrange(10**9))
    report = soak(servers, tmp_path, seed, SECONDS, print)
    print(report)
    assert not report.differences, "\n".join([str(report), *report.differences])


def test_a_graph_that_died_while_it_made_its_schema_serves(tmp_path: Path, servers: Servers) -> None:
    """Neo4j makes a constraint's index first; killed then, it keeps the index without the constraint."""
    graph = servers.new_graph(tmp_path)
    graph.start()
    try:
        with GraphDatabase.driver(graph.uri) as driver:
            for at in range(10):  # so many that their index is not made at once
                driver.execute_query(
                    "UNWIND range(1, 50000) AS n CREATE (:LineageApplication {applicationId: $at + n})",
                    at=f"{at} ",
                )
            index = "SHOW INDEXES YIELD name, owningConstraint WHERE name = 'lineage_application_id' RETURN *"
            with closing(Neo4jGraph(graph.uri, retry_seconds=0)) as store, ThreadPoolExecutor(1) as beside:
                migrating = beside.submit(store.migrate)
                wait_until(lambda: bool(driver.execute_query(index).records))
                graph.kill()
                with pytest.raises(UnavailableError):
                    migrating.result()
        graph.start()
        with GraphDatabase.driver(graph.uri) as driver:
            [left] = driver.execute_query(index).records
            assert left["owningConstraint"] is None
            with closing(Neo4jGraph(graph.uri)) as store:
                assert "migrations/0002_application_id" in store.migrate()
                assert not store.migrate()
            [made] = driver.execute_query(index).records
            assert made["owningConstraint"] == "lineage_application_id"
    finally:
        graph.kill()


@pytest.mark.timeout(900)
def test_a_graph_that_dies_while_flows_are_created_has_each_once(servers: Servers) -> None:
    """Killed in a transaction of records and in one of links, and when one of links was there already."""
    application_id, run = "dies-in-links", run_of("dies-in-links", each=13_000, groups=3_000)
    with closing(Neo4jGraph(servers.graph.uri, retry_seconds=120)) as store:
        store.migrate()
        store.write_events([started(application_id), node(application_id, 1), node(application_id, 2)])
        store.write_events([ended(application_id)])
        claim = store.claim(application_id, 10**6)
        assert claim
        transactions, died = count(), list[str]()

        def restart(when: str) -> None:
            died.append(when)
            servers.graph.kill()
            servers.graph.start()

        def transact(work: Callable[[Transaction], list[Record]]) -> list[Record]:
            at = next(transactions)

            def dying(transaction: Transaction) -> list[Record]:
                done = work(transaction)
                if at in (2, 5) and f"in {at}" not in died:
                    restart(f"in {at}")
                return done

            done = store._connection.transact(dying)
            if at == 6:  # the answer to its commit is lost, so it is tried again
                restart(f"after {at}")
                done = store._connection.transact(work)
            return done

        ApplicationWriter(transact, application_id, claim).write(run)
    assert next(transactions) == 8  # four of records, three of links, and one that says that all is there
    assert died == ["in 2", "in 5", "after 6"]
    with GraphDatabase.driver(servers.graph.uri) as driver:
        found, _, _ = driver.execute_query(
            "MATCH (a:LineageFlow {applicationId: $application})-[:flow]->(b) RETURN a.flowId, b.flowId",
            application=application_id,
        )
        (records,), _, _ = driver.execute_query(
            "MATCH (n:LineageFlow {applicationId: $application}) RETURN count(n)", application=application_id
        )
    assert sorted(map(list, found)) == links_of(run)
    assert records[0] == 16_000


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_consumer_that_dies_at_any_point_loses_and_doubles_nothing(world: World, when: str) -> None:
    chance = Random(when)
    # A member with a name of its own is replaced by its successor at once, not after its session.
    options = world.folder / "kafka.properties"
    options.write_text("group.instance.id=one\n")
    for at, point in enumerate(point for point in POINTS if point.startswith(when)):
        application = make(f"crash-{when}-{at}", chance)
        world.applications.append(application)
        for sent in at_least_once(application.messages, chance, 0.3):
            world.send(sent)
        world.send_poison(at % FLOW_PARTITIONS)
        world.flush()
        member = world.start("tests.support.soak.crash", point, kafka_config=options, batch_max_bytes=4_000)
        member.wait()
        assert member.process.returncode == -signal.SIGKILL, f"{point}: {member.said()}"
    last = world.start(kafka_config=options)
    wait_until(world.has_no_lag, last)
    wait_until(lambda: is_whole(world.servers.graph.uri, f"crash-{when}-"), last)
    last.end()
    assert not store_differences(world.folder / "flows", world.applications)
    assert not graph_differences(world.servers.graph.uri, world.applications, f"crash-{when}-")
    assert world.dead_letters() == world.poison


# -- a store that hangs, is away and comes back ------------------------------------------------------

PRESSED = "pressed"
HELD_BYTES = 24_000_000
BLOCKS, BLOCK_ROWS = 120, 100_000
#: Who does not poll for so long is out. librdkafka takes 10 s at least, which a busy machine may need.
MAX_POLL_S = 30.0


def memory_bound(held_bytes: int) -> int:
    """What docs/operations.md says that a consumer takes at most."""
    return 500_000_000 + 3 * held_bytes


def large_blocks() -> Iterator[Sent]:
    """Blocks of 800 kB that no compression makes smaller."""
    chance = Random(1)
    columns = {"in": [chance.randrange(1 << 62) for _ in range(BLOCK_ROWS)]}
    value = block(1, 100, columns=columns, application_id=PRESSED)
    for at in range(BLOCKS):
        numbered = value.replace(b'"seq":100,', b'"seq":%d,' % (100 + at), 1)
        yield Sent(is_event=False, partition=at % FLOW_PARTITIONS, value=numbered)


def peak_bytes(member: Member) -> int:
    """The most that the process ever had in memory."""
    lines = Path(f"/proc/{member.process.pid}/status").read_text().splitlines()
    [peak] = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return 1024 * int(peak)


def test_a_store_that_hangs_or_is_away_costs_neither_the_membership_nor_memory(world: World) -> None:
    options = world.folder / "kafka.properties"
    options.write_text(f"max.poll.interval.ms={MAX_POLL_S * 1000:.0f}\n")
    sent = list(large_blocks())
    assert sum(len(each.value) for each in sent) > 3 * HELD_BYTES
    for each in sent:
        world.send(each)
    for at in range(3):
        value = event(contract.APPLICATION_STARTED, application_id=PRESSED, time=at)
        world.send(Sent(is_event=True, partition=0, value=value))
    world.flush()
    graph = world.servers.graph
    graph.suspend()
    member = world.start(kafka_config=options, held_max_bytes=HELD_BYTES, batch_max_bytes=8_000_000)
    try:
        # 1. It hangs, for longer than a member may be silent.
        wait_until(lambda: bool(world.members_of_group()), member)
        before = world.members_of_group()
        suspended = time.monotonic()
        wait_until(lambda: time.monotonic() > suspended + 1.3 * MAX_POLL_S, member)
        assert world.members_of_group() == before
        # 2. It is away.
        graph.kill()
        wait_until(lambda: "trying again in" in member.said(), member)
        assert world.lag()
    finally:
        graph.kill()
        graph.start()
    # 3. It is back.
    wait_until(world.has_no_lag, member)
    assert world.members_of_group() == before
    assert peak_bytes(member) < memory_bound(HELD_BYTES)
    member.end()
    files = f"{world.folder}/flows/flows/**/*.parquet"
    counted = duckdb.sql(f"SELECT count(*), count(DISTINCT out_pos) FROM read_parquet('{files}')").fetchone()
    assert counted == (BLOCKS * BLOCK_ROWS, BLOCK_ROWS)

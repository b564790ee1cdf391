"""The local stack as a user has it: `lineage` as a process, real Kafka, real Neo4j."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn, Protocol

import neo4j as neo4j_driver
import psutil
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from lineage_service.cli.stack.down import stop
from lineage_service.cli.stack.up import start
from lineage_service.devstack.errors import DownloadError, JavaError
from lineage_service.settings import Settings
from spark_agent import contract
from tests.support.processes import still_running


class KafkaService(Protocol):
    bootstrap_servers: str

    def create_topic(self, name: str, partitions: int = 1) -> None: ...


class Neo4jService(Protocol):
    uri: str
    user: str
    password: str


class Stack:
    def __init__(self, home: Path, jars: Path) -> None:
        self.home = home
        self._jars = jars

    def with_home(self, home: Path) -> Stack:
        return Stack(home, self._jars)

    def command(self, *argv: str) -> list[str]:
        jars = ["--jars", str(self._jars)] if argv[0] == "up" else []
        return [sys.executable, "-m", "lineage_service.cli.main", *argv, "--home", str(self.home), *jars]

    def lineage(self, *argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*argv),
            capture_output=True,
            text=True,
            timeout=900,
            env={**os.environ, **environment},
        )

    def state(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads((self.home / "stack.json").read_text())
        return body


@pytest.fixture(scope="module")
def stack(
    tmp_path_factory: pytest.TempPathFactory,
    jar_folder: Path,
    new_home: Callable[[Path], None],
    cannot_have: Callable[[str], NoReturn],
) -> Iterator[Stack]:
    home = tmp_path_factory.mktemp("stack") / "home"
    new_home(home)
    try:
        # Not through the command line: only here is "cannot be had on this machine" told from "is broken".
        start(Settings(home=home), jars=jar_folder)
    except (DownloadError, JavaError) as error:
        cannot_have(str(error))
    try:
        yield Stack(home, jar_folder)
    finally:
        stop(home)


def test_status_says_what_runs_where(stack: Stack) -> None:
    result = stack.lineage("status", COLUMNS="80")
    assert result.returncode == 0, result.stderr
    state = stack.state()
    for part in (
        "4.1.0",
        "5.26.5",
        state["kafka"]["bootstrap_servers"],
        str(state["kafka"]["pid"]),
        state["neo4j"]["bolt"],
        state["neo4j"]["browser"],
        str(state["neo4j"]["pid"]),
        " MB",
    ):
        assert part in result.stdout


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["kafka", "neo4j"])
def test_of_two_that_start_at_once_at_the_same_ports_each_has_a_server_of_its_own(
    name: str, stack: Stack, tmp_path: Path, new_home: Callable[[Path], None]
) -> None:
    new_home(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")  # the same ports, and all of them free
    stacks = [stack.with_home(tmp_path / each) for each in ("one", "two")]
    try:
        commands = [
            subprocess.Popen(local_stack.command("up", "--only", name), stdout=subprocess.PIPE, text=True)
            for local_stack in stacks
        ]
        said = [command.communicate(timeout=900)[0] for command in commands]
        assert [command.returncode for command in commands] == [0, 0], said
        started = [local_stack.state()[name] for local_stack in stacks]
        for one in started:
            listening = psutil.Process(one["pid"]).net_connections("tcp")
            assert set(one["ports"].values()) <= {each.laddr.port for each in listening}
        assert not set(started[0]["ports"].values()) & set(started[1]["ports"].values())
        assert sum(bool(re.search("(is|are) taken by another program", text)) for text in said) == 1, said
        for local_stack in stacks:
            assert local_stack.lineage("status", "--only", name).returncode == 0
    finally:
        for local_stack in stacks:
            stop(local_stack.home)


def test_up_again_is_quick_and_says_so(stack: Stack) -> None:
    before = stack.state()
    result = stack.lineage("up")
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert "Kafka 4.1.0 is already up at" in result.stdout
    assert "Neo4j 5.26.5 is already up at" in result.stdout
    assert stack.state() == before


def test_the_topics_have_their_partitions(stack: Stack) -> None:
    admin = AdminClient({"bootstrap.servers": stack.state()["kafka"]["bootstrap_servers"]})
    topics = admin.list_topics(timeout=60).topics
    assert len(topics[contract.NODE_TOPIC].partitions) == 3
    assert len(topics[contract.FLOW_TOPIC].partitions) == 30
    assert len(topics[contract.DEAD_LETTER_TOPIC].partitions) == 1


def test_a_message_goes_through_kafka(stack: Stack, topic: str, group: str) -> None:
    servers = stack.state()["kafka"]["bootstrap_servers"]
    producer = Producer({"bootstrap.servers": servers})
    producer.produce(topic, b"a message", key=b"a key")
    assert producer.flush(20) == 0
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        message = next(filter(None, (consumer.poll(1) for _ in range(20))))
        assert message.error() is None
        assert (message.key(), message.value()) == (b"a key", b"a message")
    finally:
        consumer.close()


def test_neo4j_has_apoc_and_browser_and_asks_for_no_password(stack: Stack) -> None:
    state = stack.state()["neo4j"]
    with neo4j_driver.GraphDatabase.driver(state["bolt"]) as driver:
        records = driver.execute_query("RETURN apoc.version() AS version").records
        assert records[0]["version"] == "5.26.5"
        records = driver.execute_query(
            "CALL apoc.periodic.iterate('UNWIND range(1, 100) AS i RETURN i', 'CREATE (:OfThisTest {i: i})',"
            " {batchSize: 10, parallel: true}) YIELD batches, failedBatches RETURN batches, failedBatches"
        ).records
        assert records[0].values() == [10, 0]
    with urllib.request.urlopen(state["browser"], timeout=60) as answer:
        assert answer.status == 200
        assert b"Neo4j Browser" in answer.read()


def test_other_web_pages_cannot_read_neo4js_answers(stack: Stack) -> None:
    state = stack.state()["neo4j"]
    request = urllib.request.Request(state["http"], headers={"Origin": "http://elsewhere.example"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.headers["Access-Control-Allow-Origin"] in (None, state["http"])


def test_everything_listens_on_this_machine_only(stack: Stack) -> None:
    state = stack.state()
    for server in ("kafka", "neo4j"):
        listening = [
            connection.laddr
            for connection in psutil.Process(state[server]["pid"]).net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        ]
        assert {address.port for address in listening} == set(state[server]["ports"].values())
        assert {address.ip.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["kafka", "neo4j"])
def test_a_server_that_was_killed_comes_back_with_its_data(stack: Stack, name: str, topic: str) -> None:
    before = stack.state()
    bolt, servers = before["neo4j"]["bolt"], before["kafka"]["bootstrap_servers"]
    with neo4j_driver.GraphDatabase.driver(bolt) as driver:
        driver.execute_query("CREATE (:Kept {name: $name})", name=name)
    producer = Producer({"bootstrap.servers": servers})
    producer.produce(topic, name.encode())
    assert producer.flush(20) == 0

    killed = psutil.Process(before[name]["pid"])
    killed.kill()
    killed.wait()
    status = stack.lineage("status")
    assert status.returncode == 3
    assert "died" in status.stdout
    result = stack.lineage("up")
    assert result.returncode == 0, result.stderr

    after = stack.state()
    other = "neo4j" if name == "kafka" else "kafka"
    assert after[other] == before[other]
    assert after[name]["pid"] != before[name]["pid"]
    assert after[name]["ports"] == before[name]["ports"]
    with neo4j_driver.GraphDatabase.driver(bolt) as driver:
        assert (
            driver.execute_query("MATCH (k:Kept {name: $name}) RETURN count(k)", name=name).records[0][0] == 1
        )
    consumer = Consumer({"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        message = next(filter(None, (consumer.poll(1) for _ in range(30))))
        assert message.value() == name.encode()
    finally:
        consumer.close()


@pytest.mark.thorough
def test_a_port_that_someone_else_has_taken_is_gone_round(stack: Stack) -> None:
    # The stack keeps its data when it has to move: Kafka's controller port is part of what was formatted.
    before = stack.state()
    assert stack.lineage("down", "--only", "kafka").returncode == 0
    with (
        socket.create_server(("127.0.0.1", before["kafka"]["ports"]["broker"])),
        socket.create_server(("127.0.0.1", before["kafka"]["ports"]["controller"])),
    ):
        result = stack.lineage("up", "--only", "kafka")
        assert result.returncode == 0, result.stderr
    after = stack.state()["kafka"]
    assert not set(after["ports"].values()) & set(before["kafka"]["ports"].values())
    topics = AdminClient({"bootstrap.servers": after["bootstrap_servers"]}).list_topics(timeout=60).topics
    assert contract.FLOW_TOPIC in topics


def test_a_second_up_at_once_is_told_who_is_first(stack: Stack, tmp_path: Path) -> None:
    home = tmp_path / "home"
    first = subprocess.Popen(
        stack.with_home(home).command("up", "--only", "kafka"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 240
        while not (home / "stack.lock").exists() or not (home / "stack.lock").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        second = stack.with_home(home).lineage("up")
        assert second.returncode == 1
        assert f"(process {first.pid})" in second.stderr
        assert second.stderr.count("\n") == 1
        assert first.wait(timeout=480) == 0
    finally:
        first.communicate()
        stop(home)


@pytest.mark.thorough
def test_ctrl_c_leaves_nothing_behind(stack: Stack, tmp_path: Path) -> None:
    home = tmp_path / "home"
    process = subprocess.Popen(
        stack.with_home(home).command("up", "--only", "neo4j"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 240
    while not (home / "stack.json").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    pid = json.loads((home / "stack.json").read_text())["neo4j"]["pid"]
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=240)
    # Both are 130 to a shell. CPython ends by the signal itself when this came within an `exec` of text,
    # as dataclasses and named tuples do while they are imported, although the command returned 130.
    assert process.returncode in (130, -signal.SIGINT), error
    assert error == ""
    assert not still_running([pid])


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"JAVA_HOME": "", "PATH": "/nowhere"}, "there is no Java on this machine's PATH"),
        ({"JAVA_HOME": "/nowhere"}, "JAVA_HOME is /nowhere"),
        (
            {"LINEAGE_MAVEN_REPOSITORY": "http://127.0.0.1:9", "M2_REPO": "/nowhere"},
            "cannot download .* no connection",
        ),
    ],
)
def test_what_a_user_can_mend_is_one_line(environment: dict[str, str], message: str, tmp_path: Path) -> None:
    result = Stack(tmp_path / "home", tmp_path / "jars").lineage("up", **environment)
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("lineage: ")
    assert re.search(message, result.stderr)


def test_down_ends_every_process(stack: Stack) -> None:
    state = stack.state()
    result = stack.lineage("down")
    assert result.returncode == 0, result.stderr
    assert not still_running(state[server]["pid"] for server in ("kafka", "neo4j"))
    assert stack.lineage("status").returncode == 3
    again = stack.lineage("down")
    assert again.returncode == 0
    assert "Nothing runs in" in again.stdout


def test_the_fixtures_of_other_tests_are_working_servers(
    kafka: KafkaService, neo4j: Neo4jService, topic: str
) -> None:
    kafka.create_topic(topic, partitions=2)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    deadline = time.monotonic() + 240
    while topic not in (topics := admin.list_topics(timeout=60).topics):  # a broker tells it a little later
        assert time.monotonic() < deadline
    assert len(topics[topic].partitions) == 2
    auth = (neo4j.user, neo4j.password) if neo4j.password else None
    with neo4j_driver.GraphDatabase.driver(neo4j.uri, auth=auth) as driver:
        assert driver.execute_query("RETURN apoc.version()").records[0][0].startswith("5.26")

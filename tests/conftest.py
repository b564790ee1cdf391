"""What every tier of tests has: marks from the folder names, and real servers for those that ask for them.

A `kafka` or `neo4j` is, in this order: what LINEAGE_TEST_KAFKA or LINEAGE_TEST_NEO4J names; a container, if
an engine answers; the local stack, in a home of its own that is removed at the end. None to be had: the test
is skipped with the reason, and with `--require-services` it fails.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from hypothesis import settings

from scripts import brief_jvm, jvm
from spark_agent.sql import jvm_gateway
from tests.support import durations

if TYPE_CHECKING:
    from lineage_service.devstack.server import Server

TESTS = Path(__file__).parent
CACHE = TESTS.parent / ".cache"
_CONTAINER_DEADLINE_S = 120

os.environ.setdefault("SPARK_SUBMIT_OPTS", brief_jvm.options())
# Never the user's own home of `lineage`, whose broker and store are somebody's.
os.environ["LINEAGE_HOME"] = str(Path(os.environ.get("LINEAGE_HOME") or CACHE / "lineage").absolute())

# Never the spool of this machine's jobs.
os.environ["LINEAGE_SPOOL_DIR"] = str(CACHE / f"test-spool-{os.getpid()}")

# The same examples each time, and no example is too slow: machines differ.
settings.register_profile("house", derandomize=True, deadline=None)
settings.load_profile("house")
# `make test` tries fewer of them than `make test-all`.
settings.register_profile("gate", settings.get_profile("house"), max_examples=25)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-services",
        action="store_true",
        help="fail, instead of skip, where no Kafka or no Neo4j can be had",
    )
    parser.addoption(
        "--record-durations",
        action="store_true",
        help="write how long each file takes into tests/durations.json, which says what is begun first",
    )


def pytest_configure(config: pytest.Config) -> None:
    # What a shell started in the background ignores Ctrl-C, and so would the commands of the tests.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not _gives_tests_to_workers(config):
        gc.disable()  # until all tests are collected: none of their objects goes before the end
    if config.option.markexpr == "not thorough":
        settings.load_profile("gate")
    # The workers of xdist report to the process that started them.
    if config.getoption("--record-durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(durations.Recorder(TESTS))


def _gives_tests_to_workers(config: pytest.Config) -> bool:
    """Is it the process of xdist that collects no tests itself?"""
    return getattr(config.option, "dist", "no") != "no"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    durations.longest_first(items, TESTS)
    for item in items:
        if item.path.is_relative_to(TESTS):
            item.add_marker(item.path.relative_to(TESTS).parts[0])


def pytest_collection_finish() -> None:
    """No collection of garbage looks at thousands of tests again: one would take a second."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    shutil.rmtree(os.environ["LINEAGE_SPOOL_DIR"], ignore_errors=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaService:
    bootstrap_servers: str

    def create_topic(self, name: str, partitions: int = 1) -> None:
        from lineage_service.kafka.topics import create_topics

        create_topics(self.bootstrap_servers, {name: partitions})


@dataclass(frozen=True, slots=True, kw_only=True)
class Neo4jService:
    uri: str
    user: str = "neo4j"
    password: str = ""  # empty: no authentication


@pytest.fixture(scope="session")
def jar_folder() -> Path:
    """The one folder of downloaded jars, for every stack that a test starts (`lineage up --jars`)."""
    return CACHE / "lineage" / "jars"


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> KafkaService:
    named = os.environ.get("LINEAGE_TEST_KAFKA")
    if named:
        return KafkaService(bootstrap_servers=named)
    return KafkaService(bootstrap_servers=_addresses(request, "kafka")["bootstrap_servers"])


@pytest.fixture(scope="session")
def neo4j(request: pytest.FixtureRequest) -> Neo4jService:
    named = os.environ.get("LINEAGE_TEST_NEO4J")
    if named:
        return Neo4jService(
            uri=named,
            user=os.environ.get("LINEAGE_TEST_NEO4J_USER", "neo4j"),
            password=os.environ.get("LINEAGE_TEST_NEO4J_PASSWORD", ""),
        )
    return Neo4jService(uri=_addresses(request, "neo4j")["bolt"])


@pytest.fixture
def topic() -> str:
    """A name that no other test has. The broker makes the topic on first use."""
    return f"topic-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def group() -> str:
    """A consumer group that no other test has."""
    return f"group-{uuid.uuid4().hex[:12]}"


# -- where the servers come from ----------------------------------------------------------------------

Start = Callable[[str], Mapping[str, str]]


@pytest.fixture(scope="session")
def _start_server(jar_folder: Path, new_home: Callable[[Path], None]) -> Iterator[Start]:
    """Starts a server by name; what was started is stopped at the end of the session."""
    from lineage_service.cli.stack.down import stop
    from lineage_service.cli.stack.up import start
    from lineage_service.settings import Settings

    home = CACHE / f"test-stack-{os.getpid()}"
    with ExitStack() as cleanup:

        def start_server(name: str) -> Mapping[str, str]:
            if _has_container_engine():
                return _start_container(name, cleanup)
            if not home.exists():
                # Registered before the start, which may fail. Stops by pid, and only what was started here.
                cleanup.callback(shutil.rmtree, home, ignore_errors=True)
                cleanup.callback(stop, home)
                new_home(home)
            return start(Settings(home=home), only=name, jars=jar_folder).servers[name].addresses

        yield start_server


@pytest.fixture(scope="session")
def new_home() -> Callable[[Path], None]:
    """new_home(folder): makes it the home of a local stack that will take ports which no other one takes."""
    from lineage_service.devstack.state import StackState, write_state

    def new_home(folder: Path) -> None:
        folder.mkdir(parents=True)
        write_state(folder, StackState(ports=_ports_of_their_own()))

    return new_home


def _ports_of_their_own() -> dict[str, dict[str, int]]:
    """Not the well-known ones: of two stacks that start at once, one would take the other's for its own."""
    from lineage_service.devstack.ports import choose_port
    from lineage_service.devstack.servers import SERVERS

    found: dict[str, dict[str, int]] = {}
    for server in SERVERS:
        taken = [port for ports in found.values() for port in ports.values()]
        ports = found[server.name] = {}
        for purpose in server.ports:
            ports[purpose] = choose_port(purpose, [], taken=[*taken, *ports.values()])
    return found


def _addresses(request: pytest.FixtureRequest, name: str) -> Mapping[str, str]:
    from lineage_service.devstack.errors import DownloadError, JavaError

    try:
        start: Start = request.getfixturevalue("_start_server")
        return start(name)
    except (DownloadError, JavaError) as error:  # any other is a fault of the stack, not of this machine
        _cannot_have(request, f"no {name}: {error}")


def _cannot_have(request: pytest.FixtureRequest, reason: str) -> NoReturn:
    if request.config.getoption("--require-services"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def cannot_have(request: pytest.FixtureRequest) -> Callable[[str], NoReturn]:
    """cannot_have(reason): skips, or fails with `--require-services`."""
    return lambda reason: _cannot_have(request, reason)


@pytest.fixture(scope="session")
def without() -> Callable[[str, str], NoReturn]:
    """without("CHROMIUM", reason): skips, or fails with LINEAGE_TEST_CHROMIUM=required, as `.ci/run` says."""

    def without(name: str, reason: str) -> NoReturn:
        if os.environ.get(f"LINEAGE_TEST_{name}") == "required":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)

    return without


@pytest.fixture(scope="session")
def jar(cannot_have: Callable[[str], NoReturn]) -> Path:
    """The agent's Java part."""
    path = Path(jvm_gateway.JAR)
    if not path.is_file():
        cannot_have("no lineage.jar: run `make jar`, which needs a JDK")
    if not jvm.is_built():
        pytest.fail("lineage.jar is not made of the Java sources as they are: run `make jar`", pytrace=False)
    return path


def _has_container_engine() -> bool:
    """True if one answers within 2 s."""
    address = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if address.startswith("unix://") and not Path(address.removeprefix("unix://")).exists():
        return False  # without asking the client, which leaves its socket open here
    import docker

    try:
        docker.from_env(timeout=2).ping()
    except docker.errors.DockerException:
        return False
    return True


def _start_container(name: str, cleanup: ExitStack) -> Mapping[str, str]:
    """The same images as docker-compose.yml, on free ports."""
    from testcontainers.core.container import DockerContainer

    from lineage_service.devstack.kafka import Kafka
    from lineage_service.devstack.neo4j import Neo4j
    from lineage_service.devstack.ports import HOST, choose_port

    server: Server = {"kafka": Kafka(), "neo4j": Neo4j()}[name]
    ports = {purpose: choose_port(name, [well_known]) for purpose, well_known in server.ports.items()}
    if name == "kafka":
        # The broker tells its clients where it is, so it must know its port outside before it starts.
        # The image takes its own defaults only when nothing is set.
        container = DockerContainer(f"apache/kafka:{server.version}").with_envs(
            KAFKA_NODE_ID="1",
            KAFKA_PROCESS_ROLES="broker,controller",
            KAFKA_LISTENERS="PLAINTEXT://:9092,CONTROLLER://:9093",
            KAFKA_ADVERTISED_LISTENERS=f"PLAINTEXT://{HOST}:{ports['broker']}",
            KAFKA_LISTENER_SECURITY_PROTOCOL_MAP="PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            KAFKA_CONTROLLER_LISTENER_NAMES="CONTROLLER",
            KAFKA_CONTROLLER_QUORUM_VOTERS="1@localhost:9093",
            KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR="1",
            KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR="1",
            KAFKA_TRANSACTION_STATE_LOG_MIN_ISR="1",
            KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS="0",
        )
    else:
        container = (
            DockerContainer(f"neo4j:{server.version}-community")
            .with_env("NEO4J_AUTH", "none")
            .with_env("NEO4J_PLUGINS", '["apoc"]')
        )
    for purpose, port in ports.items():
        container.with_bind_ports(server.ports[purpose], port)
    cleanup.enter_context(container)
    deadline = time.monotonic() + _CONTAINER_DEADLINE_S
    while not server.is_ready(server.addresses(ports)):
        if time.monotonic() > deadline:
            out, err = container.get_logs()
            pytest.fail(
                f"{name} did not answer within {_CONTAINER_DEADLINE_S} s:\n{(out + err).decode()[-2000:]}"
            )
        time.sleep(0.5)
    return server.addresses(ports)

"""A real Kafka that misbehaves on demand, and things beside it that only look like one.

`Broker` can be killed, suspended and started again; it has topics that nobody may write to or make, and a
second listener behind a wire as slow as one likes. Used by tests and by `python -m perf.delivery`.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from queue import Queue

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from lineage_service.devstack.kafka import Kafka
from lineage_service.devstack.ports import HOST, choose_port
from lineage_service.kafka.client import silent_log
from perf.delivery.own_server import READY_DEADLINE_S, OwnServer, free_ports

#: Topics whose names begin so may be read, but not written to; or not be made.
NO_WRITE, NO_CREATE = "no-write-", "no-create-"

#: Everybody is the same anonymous user here: what no rule names is allowed, so that one broker serves all.
_SETTINGS = """
listeners=PLAINTEXT://{host}:{broker},SLOW://{host}:{behind},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{broker},SLOW://{host}:{slow}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SLOW:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
auto.create.topics.enable=false
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
"""


class Broker:
    """One Kafka process of its own, in `folder`. Address `servers`; `slow_servers` for the slow wire."""

    def __init__(
        self, folder: Path, jars: Path, *, bytes_per_second: int = 20_000, answers_after_s: float = 0.0
    ) -> None:
        """The slow wire takes `bytes_per_second`, and each answer comes `answers_after_s` later there."""
        self._answers_after_s = answers_after_s
        self._folder, self._jars = folder, jars
        self._ports = free_ports("broker", "behind", "slow", "controller")
        self.servers = f"{HOST}:{self._ports['broker']}"
        self.slow_servers = f"{HOST}:{self._ports['slow']}"
        self._bytes_per_second = bytes_per_second
        self._cleanup = ExitStack()

    def __enter__(self) -> Broker:
        self._server = OwnServer(Kafka(), self._folder, self._jars, self._ports)
        self._server.configure("server.properties", _SETTINGS.format(host=HOST, **self._ports))
        self._cleanup.callback(self._server.kill)
        self._cleanup.enter_context(
            slow_wire(
                self._ports["slow"], self._ports["behind"], self._bytes_per_second, self._answers_after_s
            )
        )
        try:
            self.start()
            self._make_rules()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def start(self) -> None:
        """Start it, for the first time or again, and wait until it answers."""
        self._server.start()

    def kill(self) -> None:
        """SIGKILL: what a machine that loses its power does."""
        self._server.kill()

    def suspend(self) -> None:
        """SIGSTOP: connections stay, nothing answers."""
        self._server.suspend()

    def resume(self) -> None:
        self._server.resume()

    def revive(self) -> None:
        """Let it run and answer, whatever was done to it."""
        if not self._server.has_process:
            self.start()
        self.resume()
        # A broker that was silent for long has lost its partitions, and gets them back a little later.
        # A client that asked before may not notice for minutes, so each try has its own.
        deadline = time.monotonic() + READY_DEADLINE_S
        while not _serves(self.admin):
            if time.monotonic() > deadline:
                raise RuntimeError(f"Kafka has not come back within {READY_DEADLINE_S:.0f} s")
            time.sleep(0.1)

    @property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.servers}, logger=silent_log)

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        topic = NewTopic(name, num_partitions=partitions, config=dict(config or {}))
        admin = self.admin
        admin.create_topics([topic])[name].result(30)

    def _make_rules(self) -> None:
        def rule(
            kind: ResourceType, name: str, pattern: ResourcePatternType, operation: AclOperation, *, may: bool
        ) -> AclBinding:
            permission = AclPermissionType.ALLOW if may else AclPermissionType.DENY
            return AclBinding(kind, name, pattern, "User:ANONYMOUS", "*", operation, permission)

        cluster = (ResourceType.BROKER, "kafka-cluster", ResourcePatternType.LITERAL)
        kept = (ResourceType.TOPIC, NO_WRITE, ResourcePatternType.PREFIXED)
        absent = (ResourceType.TOPIC, NO_CREATE, ResourcePatternType.PREFIXED)
        rules = [
            # A rule for a resource ends "everybody may" for it; making topics is asked of each topic, then.
            rule(*cluster, AclOperation.ALL, may=True),
            rule(*cluster, AclOperation.CREATE, may=False),
            rule(*kept, AclOperation.ALL, may=True),
            rule(*kept, AclOperation.WRITE, may=False),
            rule(*absent, AclOperation.ALL, may=True),
            rule(*absent, AclOperation.CREATE, may=False),
        ]
        admin = self.admin  # kept until the answers are there
        for future in admin.create_acls(rules).values():
            future.result(30)


def _serves(admin: AdminClient) -> bool:
    """True if the broker leads a topic that is made now, and says so of all others."""
    probe = f"probe-{time.monotonic_ns()}"
    try:
        admin.create_topics([NewTopic(probe, num_partitions=1)])[probe].result(5)
        topics = admin.list_topics(timeout=5).topics
        places = [TopicPartition(topic, number) for topic in topics for number in topics[topic].partitions]
        asked = admin.list_offsets({place: OffsetSpec.latest() for place in places}, request_timeout=5)
        for future in asked.values():
            future.result(5)
    except (KafkaException, TimeoutError):
        return False
    return True


@contextmanager
def slow_wire(port: int, target: int, bytes_per_second: int, answers_after_s: float = 0.0) -> Iterator[None]:
    """Carries what clients send from `port` to `target` at this rate in all.

    Answers come `answers_after_s` later.
    """
    turn = threading.Lock()

    def connect(client: socket.socket) -> None:
        try:
            broker = socket.create_connection((HOST, target))
        except OSError:
            client.close()
            return
        for carry in (
            partial(_carry_slowly, client, broker, bytes_per_second, turn),
            partial(_carry_late, broker, client, answers_after_s),
        ):
            threading.Thread(target=carry, daemon=True).start()

    with listening(connect, port):
        yield


def _carry_slowly(
    source: socket.socket, sink: socket.socket, bytes_per_second: int, turn: threading.Lock
) -> None:
    with suppress(OSError), source, sink:
        while data := source.recv(1_000):
            with turn:
                time.sleep(len(data) / bytes_per_second)  # the wire itself, not a wait for a state
            sink.sendall(data)


def _carry_late(source: socket.socket, sink: socket.socket, answers_after_s: float) -> None:
    answers: Queue[tuple[float, bytes]] = Queue()
    threading.Thread(target=_hand_on, args=(answers, sink), daemon=True).start()
    with suppress(OSError), source:
        while data := source.recv(65_536):
            answers.put((time.monotonic() + answers_after_s, data))
    answers.put((0.0, b""))


def _hand_on(answers: Queue[tuple[float, bytes]], sink: socket.socket) -> None:
    with suppress(OSError), sink:
        while (entry := answers.get())[1]:
            due, answer = entry
            time.sleep(max(0.0, due - time.monotonic()))
            sink.sendall(answer)


@contextmanager
def silent_listener() -> Iterator[str]:
    """The address of something that takes connections and never says a word."""
    connections: list[socket.socket] = []
    with listening(connections.append, choose_port("a silent listener", [])) as address:
        yield address
    for connection in connections:
        connection.close()


@contextmanager
def listening(take: object, port: int) -> Iterator[str]:
    """Gives each connection to `take` in a thread; the address of the listener.

    `port` is one that the system gives to nobody by itself: who still looks for this listener when it is
    gone would else reach a server of Spark, which listens for one connection and takes the first.
    """
    assert callable(take)

    def accept(server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                take(server.accept()[0])

    with socket.create_server((HOST, port)) as server:
        thread = threading.Thread(target=accept, args=(server,), daemon=True)
        thread.start()
        try:
            yield f"{HOST}:{port}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


@contextmanager
def closed_port() -> Iterator[str]:
    """An address where nothing listens, nor can while the block lasts: it is bound."""
    port = choose_port("nothing", [])
    with socket.socket() as bound:
        bound.bind((HOST, port))
        yield f"{HOST}:{port}"

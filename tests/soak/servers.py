"""A Kafka and a Neo4j with APOC of one's own, that can be killed, suspended and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from lineage_service.settings import Settings
from lineage_service.stack.download import fetch
from lineage_service.stack.jars import read_lock
from lineage_service.stack.java import find_java
from lineage_service.stack.neo4j import Neo4j
from lineage_service.stack.ports import choose_port
from lineage_service.stack.process import tail
from lineage_service.stack.progress import Quiet
from lineage_service.stack.server import Place
from perf.delivery.brokers import Broker

__all__ = ["Broker", "Graph", "Servers"]

READY_DEADLINE_S = 180.0


class Graph:
    """One Neo4j process in `folder`. Nothing answers before `start`."""

    def __init__(self, folder: Path, jars: Path) -> None:
        self._server = Neo4j()
        self._place = Place(folder=folder / "neo4j", logs=folder / "logs")
        self._place.folder.mkdir(parents=True)
        self._place.logs.mkdir(parents=True, exist_ok=True)
        self._ports: dict[str, int] = {}
        for purpose in self._server.ports:
            self._ports[purpose] = choose_port(purpose, [], taken=self._ports.values())
        self.uri = self._server.addresses(self._ports)["bolt"]
        lock = read_lock(self._server.name)
        fetch(list(lock), jars, Settings().maven_repository, Quiet())
        files = [jars.absolute() / jar.file_name for jar in lock]
        self._command = self._server.prepare(find_java(), files, self._place, self._ports)
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0

    def start(self, *, wait: bool = True) -> None:
        self._started_at = time.time()
        with (self._place.logs / "neo4j.out").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        if wait:
            self.wait()

    def wait(self) -> None:
        """Return once it answers."""
        deadline = time.monotonic() + READY_DEADLINE_S
        while not self._server.is_ready(self._server.addresses(self._ports)):
            if self._process is None or self._process.poll() is not None or time.monotonic() > deadline:
                logs = tail(self._server.logs(self._place), since=self._started_at)
                raise RuntimeError(f"Neo4j did not start: {logs}")
            time.sleep(0.1)

    def kill(self) -> None:
        """SIGKILL, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def suspend(self) -> None:
        """SIGSTOP: connections stay, nothing answers."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        if self._process is not None:
            os.kill(self._process.pid, signal.SIGCONT)


class Servers:
    """Both, started side by side; ended with the context."""

    def __init__(self, folder: Path, jars: Path) -> None:
        self.broker = Broker(folder / "broker", jars)
        self._folder, self._jars = folder, jars
        self._names = 0

    def __enter__(self) -> Servers:
        self.graph = Graph(self._folder / "graph", self._jars)
        try:
            self.graph.start(wait=False)
            self.broker.__enter__()
            self.graph.wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.graph.kill()
        self.broker.__exit__()

    def new_name(self) -> str:
        """A name for topics and groups that nobody else has."""
        self._names += 1
        return f"{os.getpid()}-{self._names}"

"""A Kafka and a Neo4j with APOC of one's own, that can be killed, suspended and started again."""

from __future__ import annotations

import os
from pathlib import Path

from lineage_service.devstack.neo4j import Neo4j
from perf.delivery.brokers import Broker
from perf.delivery.own_server import OwnServer, free_ports

__all__ = ["Broker", "Graph", "Servers"]


class Graph(OwnServer):
    """One Neo4j process. Nothing answers before `start`."""

    def __init__(self, folder: Path, jars: Path) -> None:
        server = Neo4j()
        ports = free_ports(*server.ports)
        super().__init__(server, folder, jars, ports)
        self.uri = server.addresses(ports)["bolt"]


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

    def new_graph(self, folder: Path) -> Graph:
        """Another Neo4j, in `folder`, which who asks for it starts and kills."""
        return Graph(folder, self._jars)

    def new_name(self) -> str:
        """A name for topics and groups that nobody else has."""
        self._names += 1
        return f"{os.getpid()}-{self._names}"

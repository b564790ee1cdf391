"""The servers of the local stack, where each lives, and whether it runs."""

from __future__ import annotations

from pathlib import Path

import psutil

from lineage_service.devstack import process
from lineage_service.devstack.kafka import Kafka
from lineage_service.devstack.neo4j import Neo4j
from lineage_service.devstack.server import Place, Server
from lineage_service.devstack.state import StackState

SERVERS: tuple[Server, ...] = (Kafka(), Neo4j())
NAMES = tuple(server.name for server in SERVERS)


def selected(only: str | None) -> list[Server]:
    """All servers, or the one that `--only` names."""
    return [server for server in SERVERS if only in (None, server.name)]


def place_of(home: Path, server: Server) -> Place:
    """Where `server` lives in the stack of `home`, an absolute path."""
    return Place(folder=home / server.name, logs=home / "logs")


def answers(state: StackState, home: Path, server: Server) -> bool:
    """Whether the server of this home answers: its ports may be those of another home's server."""
    if not server.is_ready(state.servers[server.name].addresses):
        return False
    # Asked afterwards: what answered before may be a server that was faster, and this one gone since.
    server_process = running(state, home, server)
    ports = state.servers[server.name].ports.values()
    return server_process is not None and all(process.listens(server_process, port) for port in ports)


def running(state: StackState, home: Path, server: Server) -> psutil.Process | None:
    """The server's process if it runs; None if it was never started, was stopped or has died."""
    started = state.servers.get(server.name)
    if started is None:
        return None
    return process.find(started.pid, started.created, place_of(home, server).mark)

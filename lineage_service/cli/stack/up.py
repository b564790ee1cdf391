"""`lineage up`: fetches and starts the local stack, and does nothing to what already runs.

The servers stay when the command ends. What a failed or interrupted start has begun is stopped again.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from lineage_service.devstack import process
from lineage_service.devstack.download import fetch
from lineage_service.devstack.errors import HomeError, ServerError
from lineage_service.devstack.guard import alone, usable
from lineage_service.devstack.jars import read_lock
from lineage_service.devstack.java import find_java
from lineage_service.devstack.ports import choose_port, is_free
from lineage_service.devstack.progress import Quiet, Reporter, console_reporter
from lineage_service.devstack.server import Server
from lineage_service.devstack.servers import NAMES, answers, place_of, running, selected
from lineage_service.devstack.state import StackState, Started, read_state, write_state

if TYPE_CHECKING:
    from lineage_service.settings import Settings

#: 3 s and 10 s on an idle machine; a laptop that also runs a test suite has taken a minute.
_READY_DEADLINE_S = 180.0
#: A server that found its port taken when it started is begun again, with another port.
_PORT_TRIES = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """The flags of `lineage up`."""
    parser.add_argument("--only", choices=NAMES, help="start this one only")
    parser.add_argument(
        "--jars",
        type=Path,
        metavar="FOLDER",
        help="keep the downloaded jars here, also for other stacks (default: jars in the home)",
    )


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Runs `lineage up`."""
    start(settings, only=options.only, jars=options.jars, reporter=console_reporter())
    return 0


def start(
    settings: Settings,
    *,
    only: str | None = None,
    jars: Path | None = None,
    reporter: Reporter | None = None,
) -> StackState:
    """Starts what does not run yet, waits until it answers, creates the topics, and returns what runs where.

    `only` is `kafka` or `neo4j`; `jars` the folder that keeps the downloaded jars, by default `jars` in the
    home. Raises StackError: no Java, no network, no free port, another `up` at work, a server that does not
    start.
    """
    home = settings.home.absolute()
    reporter = reporter or Quiet()
    _check_name(home)
    with alone(home), usable(home):
        startup = _Startup(home, read_state(home), reporter)
        down = [server for server in selected(only) if running(startup.state, home, server) is None]
        try:
            if down:
                # 1. What every server needs, before any is started.
                startup.java = find_java()
                startup.files = _fetch(down, jars or home / "jars", settings, reporter)
                # 2. All processes at once: Neo4j's start is long enough to hide Kafka's.
                for server in down:
                    startup.begin(server)
            # 3. Each is up when it answers a real request, also one that an earlier `up` left starting.
            for server in selected(only):
                startup.wait_for(server, tries=_PORT_TRIES if server in down else 1)
                if server.name == "kafka":
                    _create_topics(startup.state, settings, reporter)
                started = startup.state.servers[server.name]
                reporter.say(_sentence(server, started, is_new=server in down))
        except BaseException:
            startup.undo()
            raise
    return startup.state


class _Startup:
    """The servers that one `lineage up` begins, and the state of the stack meanwhile."""

    def __init__(self, home: Path, state: StackState, reporter: Reporter) -> None:
        self.state = state
        self.java = Path()
        self.files: dict[str, list[Path]] = {}  # the class path of each server
        self._home = home
        self._reporter = reporter
        self._starting: list[_Starting] = []

    def begin(self, server: Server) -> None:
        begun = _spawn(server, self.java, self.files[server.name], self._home, self.state, self._reporter)
        # Written before the wait: if this process is killed now, the next `up` still knows the server.
        self.state = self.state.with_server(begun.started)
        self._starting.append(begun)
        write_state(self._home, self.state)

    def wait_for(self, server: Server, *, tries: int) -> None:
        """Until it answers. Raises ServerError."""
        for tries_left in reversed(range(tries)):
            try:
                _wait_until_ready(server, self.state, self._home, self._reporter)
                return
            except _PortLostError:
                # Another program, perhaps another home's `up`, took it between choice and start.
                if not tries_left:
                    raise
                self.begin(server)

    def undo(self) -> None:
        """Stop what was begun."""
        for begun in self._starting:
            process.stop(begun.process)
            self.state = self.state.without_server(begun.started.name)
        write_state(self._home, self.state)


def _check_name(home: Path) -> None:
    """Java's class paths and properties files, and Neo4j's web server, each stumble over some of these."""
    name = str(home)
    if not name.isascii() or not name.isprintable() or set(name) & set(':%*?#;"\\'):
        raise HomeError(
            f"Kafka and Neo4j cannot live in a folder of this name: {home}. Give one of plain ASCII letters, "
            'without any of : % * ? # ; " \\, with --home or LINEAGE_HOME'
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Starting:
    started: Started
    process: psutil.Process


def _fetch(
    servers: Sequence[Server], folder: Path, settings: Settings, reporter: Reporter
) -> dict[str, list[Path]]:
    """The class path of each server by its name; one download for all of them."""
    locks = {server.name: read_lock(server.name) for server in servers}
    every = {jar.file_name: jar for lock in locks.values() for jar in lock}
    fetch(list(every.values()), folder, settings.maven_repository, reporter)
    return {name: [folder.absolute() / jar.file_name for jar in lock] for name, lock in locks.items()}


def _spawn(
    server: Server, java: Path, jars: Sequence[Path], home: Path, state: StackState, reporter: Reporter
) -> _Starting:
    place = place_of(home, server)
    place.folder.mkdir(parents=True, exist_ok=True)
    place.logs.mkdir(parents=True, exist_ok=True)
    before = state.ports.get(server.name, {})
    ports: dict[str, int] = {}
    for purpose, well_known in server.ports.items():
        preferred = list(dict.fromkeys([before.get(purpose, well_known), well_known]))
        port = ports[purpose] = choose_port(f"{server.title}'s {purpose}", preferred, taken=ports.values())
        if reason := _why_not(preferred, port, well_known):
            reporter.say(f"{reason}; {server.title}'s {purpose} listens on {port}")
    child = process.spawn(server.prepare(java, jars, place, ports), server.logs(place)[0])
    return _Starting(
        started=Started(
            name=server.name,
            pid=child.pid,
            created=child.create_time(),
            version=server.version,
            ports=ports,
            addresses=server.addresses(ports),
        ),
        process=child,
    )


def _why_not(preferred: Sequence[int], port: int, well_known: int) -> str:
    """Why a server does not listen where it usually does; empty where it does."""
    taken = preferred[: preferred.index(port)] if port in preferred else preferred
    if taken:
        return (
            f"{' and '.join(map(str, taken))} {'is' if len(taken) == 1 else 'are'} taken by another program"
        )
    return "" if port == well_known else f"its port of before was another than the usual {well_known}"


class _PortLostError(ServerError):
    """The server ended while it started, and another program listens on one of its ports."""


def _wait_until_ready(server: Server, state: StackState, home: Path, reporter: Reporter) -> None:
    """Raises ServerError."""
    started = state.servers[server.name]
    if answers(state, home, server):
        return
    place = place_of(home, server)
    deadline = time.monotonic() + _READY_DEADLINE_S
    with reporter.waiting(f"Waiting for {server.title} {server.version}") as tick:
        while not answers(state, home, server):
            tick(0)
            failure = ""
            if running(state, home, server) is None:
                failure = "ended while it started"
            elif time.monotonic() >= deadline:
                failure = f"did not answer within {_READY_DEADLINE_S:.0f} s"
            if failure:
                logs = process.tail(server.logs(place), since=started.created)
                is_lost = running(state, home, server) is None and not all(
                    map(is_free, started.ports.values())
                )
                error = _PortLostError if is_lost else ServerError
                raise error(f"{server.title} (process {started.pid}) {failure}; {logs}")
            time.sleep(0.2)


def _create_topics(state: StackState, settings: Settings, reporter: Reporter) -> None:
    # Not at the top: `up --only neo4j` needs no Kafka client.
    from lineage_service.kafka.topics import create_topics, topic_partitions

    created = create_topics(state.servers["kafka"].addresses["bootstrap_servers"], topic_partitions(settings))
    if created:
        reporter.say(f"Created the topics {', '.join(created)}")


def _sentence(server: Server, started: Started, *, is_new: bool) -> str:
    where = started.addresses.get("bootstrap_servers") or started.addresses["bolt"]
    browser = started.addresses.get("browser")
    beside = f", Neo4j Browser at {browser}" if browser else ""
    up = "is up" if is_new else "is already up"
    return f"{server.title} {started.version} {up} at {where}{beside} (process {started.pid})"

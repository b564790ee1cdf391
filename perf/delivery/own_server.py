"""A server of the local stack as a process of one's own, that can be killed, suspended and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from lineage_service.devstack.download import fetch
from lineage_service.devstack.jars import read_lock
from lineage_service.devstack.java import find_java
from lineage_service.devstack.ports import choose_port
from lineage_service.devstack.process import tail
from lineage_service.devstack.progress import Quiet
from lineage_service.devstack.server import Place, Server
from lineage_service.settings import Settings

READY_DEADLINE_S = 180.0


class OwnServer:
    """One process, in `folder`. Nothing answers before `start`."""

    def __init__(
        self,
        server: Server,
        folder: Path,
        jars: Path,
        ports: Mapping[str, int],
        is_ready: Callable[[], bool] | None = None,
    ) -> None:
        """Its jars are fetched where `jars` lacks them. Raises DownloadError, JavaError.

        `is_ready` says whether it answers, where its usual client does not reach it.
        """
        self._server = server
        self._place = Place(folder=folder / server.name, logs=folder / "logs")
        self._place.folder.mkdir(parents=True)
        self._place.logs.mkdir(parents=True, exist_ok=True)
        lock = read_lock(server.name)
        fetch(list(lock), jars, Settings().maven_repository, Quiet())
        files = [jars.absolute() / jar.file_name for jar in lock]
        self._command = server.prepare(find_java(), files, self._place, ports)
        self._is_ready = is_ready or (lambda: server.is_ready(server.addresses(ports)))
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0

    def configure(self, file: str, more: str) -> None:
        """Add to one of the files of its configuration, before `start`."""
        with (self._place.folder / file).open("a") as settings:
            settings.write(more)

    def start(self, *, wait: bool = True) -> None:
        """Start it, for the first time or again."""
        self._started_at = time.time()
        with self._server.logs(self._place)[0].open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        if wait:
            self.wait()

    def wait(self) -> None:
        """Return once it answers."""
        deadline = time.monotonic() + READY_DEADLINE_S
        while not self._is_ready():
            if self._process is None or self._process.poll() is not None or time.monotonic() > deadline:
                said = tail(self._server.logs(self._place), since=self._started_at)
                raise RuntimeError(f"{self._server.title} did not start: {said}")
            time.sleep(0.1)

    @property
    def has_process(self) -> bool:
        """It was started, and not killed since."""
        return self._process is not None

    def kill(self) -> None:
        """SIGKILL, if it runs: what a machine that loses its power does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def suspend(self) -> None:
        """SIGSTOP: connections stay, nothing answers."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        self._send(signal.SIGCONT)

    def _send(self, what: signal.Signals) -> None:
        if self._process is not None:
            os.kill(self._process.pid, what)


def free_ports(*purposes: str) -> dict[str, int]:
    ports: dict[str, int] = {}
    for purpose in purposes:
        ports[purpose] = choose_port(purpose, [], taken=ports.values())
    return ports

"""The service's own processes under measurement: `lineage consume`, `lineage serve`, `lineage maintain`.

Each is started as a user starts it, and asked for what it cost while it still lives, or when it has ended.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from lineage_service.store.flow_store import DeltaFlowStore
from perf.capture.drivers import ROOT, JobError
from perf.ingest.report import Cost
from perf.ingest.topics import Topics

#: Where the packages of this tree are, whichever one is installed.
_PACKAGES = [ROOT, *(ROOT / folder for folder in ("api", "cypher", "ui"))]
_START_S = 60.0
_STOP_S = 60.0
_ANSWER_S = 120.0
_ROWS = re.compile(r"([0-9,]+) rows")


class Process:
    """One `lineage COMMAND` until `stop`."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self.log = log
        with log.open("wb") as output:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "lineage_service.cli.main", *command],
                cwd=log.parent,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, _PACKAGES))},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def cost(self) -> Cost:
        """So far. Raises JobError if it has ended."""
        try:
            process = psutil.Process(self._child.pid)
            times = process.cpu_times()
            status = Path(f"/proc/{self._child.pid}/status").read_text()
            peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        except (psutil.NoSuchProcess, OSError, StopIteration):
            raise JobError(f"a process has ended that should not; see {self.log}") from None
        said = _ROWS.findall(self.log.read_text(errors="replace"))
        return Cost(
            cpu_s=round(times.user + times.system, 2),
            peak_mib=round(int(peak.split()[1]) / 1024, 1),
            rows=int(said[-1].replace(",", "")) if said else 0,
        )

    def is_alive(self) -> bool:
        return self._child.poll() is None

    def stop(self) -> None:
        """SIGTERM, and by force where it does not end by itself."""
        if self.is_alive():
            self._child.send_signal(signal.SIGTERM)
            try:
                self._child.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()

    def wait(self) -> tuple[float, Cost]:
        """(seconds until it ended by itself, what it cost). Raises JobError if it failed."""
        began = time.perf_counter()
        _, status, usage = os.wait4(self._child.pid, 0)
        self._child.returncode = os.waitstatus_to_exitcode(status)
        if self._child.returncode:
            raise JobError(f"it failed; see {self.log}")
        seconds = time.perf_counter() - began
        cpu_s = round(usage.ru_utime + usage.ru_stime, 2)
        return seconds, Cost(cpu_s=cpu_s, peak_mib=round(usage.ru_maxrss / 1024, 1))


class Service:
    """The processes over one flow store in `folder`, for one pair of topics and one group."""

    def __init__(self, topics: Topics, folder: Path, neo4j_uri: str = "") -> None:
        self.group = f"measured-{folder.name}"
        self.folder = folder
        # A home in which no stack runs: what is used is what is given here.
        self._settings = [
            *("--home", str(folder), "--store", str(folder / "flows")),
            *("--kafka-bootstrap-servers", topics.bootstrap_servers, "--consumer-group", self.group),
            *("--node-topic", topics.node, "--flow-topic", topics.flow),
            *("--neo4j-uri", neo4j_uri, "--metrics", "false"),
        ]
        folder.mkdir(parents=True)

    @property
    def store(self) -> DeltaFlowStore:
        return DeltaFlowStore(self.folder / "flows")

    def consume(self, number: int) -> Process:
        return Process(["consume", *self._settings], self.folder / f"consume-{number}.log")

    def serve(self) -> Api:
        process = Process(["serve", *self._settings, "--api-port", "0"], self.folder / "serve.log")
        return Api(process, self.folder / "api.json")

    def maintain(self) -> Process:
        return Process(["maintain", *self._settings], self.folder / "maintain.log")


class Api:
    """A `lineage serve` that answers."""

    def __init__(self, process: Process, address: Path) -> None:
        self.process = process
        deadline = time.monotonic() + _START_S
        while not address.exists():
            if not process.is_alive() or time.monotonic() > deadline:
                process.stop()
                raise JobError(f"`lineage serve` does not answer; see {process.log}")
            time.sleep(0.02)
        self.url = json.loads(address.read_text())["url"]

    def wait_until_complete(self, application_id: str, timeout_s: float) -> None:
        """Until it says that every flow of the application is there. Raises JobError."""
        deadline, said = time.monotonic() + timeout_s, ""
        while time.monotonic() < deadline:
            answer = self.get(f"/api/applications/{application_id}")
            if answer.get("complete"):
                return
            said = str(answer.get("missing", answer))
            time.sleep(0.1)
        raise JobError(f"{application_id} is not complete after {timeout_s:g} s: {said}")

    def get(self, path: str, /, **parameters: object) -> dict[str, Any]:
        """The answer as JSON, also of a problem; empty when none came in two minutes."""
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        try:
            with urllib.request.urlopen(f"{self.url}{path}{query}", timeout=_ANSWER_S) as answer:
                return dict(json.load(answer))
        except TimeoutError:
            return {}
        except urllib.error.HTTPError as problem:
            return dict(json.load(problem))

"""Warm drivers, one for each mode, and what one run of a job costs in them."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from types import MappingProxyType
from typing import Any

from perf.capture import processes
from perf.capture.cases import DETAILED, LINEAGE, PACED, PARTS, UNEXPLAINED
from perf.capture.driver import KEY

ROOT = Path(__file__).parents[2]
_START_S = 60
_JOB_S = 3_600


class JobError(RuntimeError):
    """A job failed; the message is its traceback."""


class UnmirroredError(RuntimeError):
    """The mode `nolin` lacks operators of the job; the message names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one run. `cpu_s` is that of the driver, its JVM and all Python workers; `workers_s` the latter's."""

    wall_s: float
    cpu_s: float
    workers_s: float


class Driver:
    """A spark-submit that runs jobs in `mode` until it is closed. Its log is in `folder`.

    `root` is the tree that the agent comes from. `conf` is of the jobs.
    """

    def __init__(
        self,
        mode: str,
        *,
        cores: int,
        memory: str,
        bootstrap_servers: str,
        folder: Path,
        root: Path = ROOT,
        conf: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        conf = {
            **conf,
            "spark.ui.enabled": "false",
            "spark.driver.memory": memory,
            "spark.lineage.enabled": str(mode in (LINEAGE, DETAILED, PACED, UNEXPLAINED, *PARTS)).lower(),
            "spark.lineage.pace": str(mode == PACED).lower(),
            "spark.lineage.explain": "off" if mode == UNEXPLAINED else "auto",
            "spark.lineage.detailed": str(mode == DETAILED).lower(),
            "spark.lineage.kafka.bootstrap.servers": bootstrap_servers,
        }
        if mode in PARTS:
            conf["spark.driver.extraJavaOptions"] = f"-Dlineagemaster.until={mode}"
        flags = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
        submit = str(Path(sys.executable).with_name("spark-submit"))
        key = secrets.token_hex(16)
        # A path of a socket may have 107 characters; the folder's own may be longer.
        self._sockets = Path(tempfile.mkdtemp(prefix="perf-"))
        address = str(self._sockets / mode)
        self._listener = Listener(address, authkey=key.encode())
        self._log = folder / f"{mode}.log"
        with self._log.open("wb") as log:
            self._submit = subprocess.Popen(
                [
                    submit,
                    "--master",
                    f"local[{cores}]",
                    *flags,
                    str(root / "perf/capture/driver.py"),
                    mode,
                    address,
                ],
                cwd=folder,
                env={
                    **_environment(),
                    KEY: key,
                    "PYTHONPATH": str(root),
                    "PYSPARK_PYTHON": sys.executable,
                    "SPARK_LOCAL_IP": "127.0.0.1",
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.pid = self._submit.pid
        self._connection = self._accept()

    def _accept(self) -> Connection[Any, Any]:
        # Listener.accept has no time limit of its own, and the socket behind it is the only handle to one.
        self._listener._listener._socket.settimeout(_START_S)  # type: ignore[attr-defined]
        try:
            return self._listener.accept()
        except TimeoutError:
            self.close()
            raise JobError(f"spark-submit did not come up in {_START_S} s; see {self._log}") from None

    def run(self, job: str, arguments: Sequence[str]) -> Cost:
        """Runs one job. Raises JobError and UnmirroredError."""
        stay = processes.tree(self.pid)  # the JVM and the driver
        before = processes.seconds(stay)
        self._connection.send((job, list(arguments)))
        deadline = time.monotonic() + _JOB_S
        while not self._connection.poll(1):
            if self._submit.poll() is not None or time.monotonic() > deadline:
                raise JobError(f"{job} did not come to an end; see {self._log}")
        answer = self._connection.recv()
        if answer.get("unmirrored"):
            raise UnmirroredError(", ".join(answer["unmirrored"]))
        if "error" in answer:
            raise JobError(f"{job}: {answer['error']}\nThe log is {self._log}")
        cpu_s = processes.seconds(stay) - before + answer["workers_s"]
        return Cost(wall_s=answer["wall_s"], cpu_s=cpu_s, workers_s=answer["workers_s"])

    def close(self) -> None:
        """Ends the driver; by force where it does not end by itself."""
        if hasattr(self, "_connection"):
            self._connection.close()
        self._listener.close()
        try:
            self._submit.wait(20)
        except subprocess.TimeoutExpired:
            self._submit.terminate()
            self._submit.wait()
        shutil.rmtree(self._sockets, ignore_errors=True)


def _environment() -> dict[str, str]:
    """Ours, in which Python may keep what it compiled, as pip does of a package that it installs."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def digest(output: Path) -> tuple[int, str]:
    """(rows, SHA-256 of files' numbers and bytes in order) of a text output. Equal rows in equal order.

    Of a table of Delta Lake: of its rows, in the order of their columns.
    """
    if (output / "_delta_log").exists():
        from deltalake import DeltaTable

        table = DeltaTable(output).to_pyarrow_table()
        table = table.sort_by([(name, "ascending") for name in table.column_names])
        return table.num_rows, hashlib.sha256(repr(table.to_pydict()).encode()).hexdigest()
    rows, sha = 0, hashlib.sha256()
    for part in sorted(output.glob("part-*")):
        sha.update(part.name[: len("part-00000")].encode())
        data = part.read_bytes()
        rows += data.count(b"\n")
        sha.update(data)
    return rows, sha.hexdigest()

"""A session beside a real consumer and a real API."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext

DEADLINE_S = 480


@dataclass
class Servers:
    """A consumer and an API of their own, which read topics of their own."""

    home: Path
    environment: dict[str, str]
    conf: dict[str, str]
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, *command: str) -> None:
        with (self.home / f"{command[0]}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "lineage_service.cli.main", *command],
                env=self.environment,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        self.started.append(process)

    def address(self) -> str:
        deadline = time.monotonic() + DEADLINE_S
        while not (self.home / "api.json").exists():
            logs = [path.read_text() for path in self.home.glob("*.log")]
            assert time.monotonic() < deadline, logs
            assert all(process.poll() is None for process in self.started), logs
            time.sleep(0.1)
        return str(json.loads((self.home / "api.json").read_text())["url"])


@contextmanager
def session(conf: dict[str, str]) -> Iterator[SparkContext]:
    settings = {"spark.master": "local[2]", "spark.app.name": "orders", **conf}
    context = SparkContext(conf=SparkConf().setAll(list(settings.items())))
    context.setLogLevel("OFF")
    try:
        yield context
    finally:
        context.stop()


def rows_of_files(rows: Any) -> set[tuple[str, int, int, str]]:
    return {(Path(row.path).name, row.row, row.line, row.text) for row in rows.collect()}

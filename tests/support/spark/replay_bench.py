"""A job, Kafka, `lineage consume` and `lineage replay`, as a user has them: each is a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from lineage_service.errors import UnknownApplicationError
from lineage_service.lineage import ExplanationCheck
from lineage_service.queries import ExplanationQuery, RecordQuery, StartQuery, TraceQuery
from lineage_service.tracing.query.service import LineageQueries
from tests.support.consumers import Bench, bench_of, wait_until

DEADLINE_S = 600


class Answer(NamedTuple):
    """What a command gave."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.out)
        return answer


class ReplayBench:
    """Of one store. Jobs run in `folder`."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self._bench, self.folder = bench, folder
        self.home = bench.folder / "home"

    def environment(self, *, has_lineage: bool = True, **conf: str) -> dict[str, str]:
        settings = {
            "spark.master": "local[2]",
            "spark.ui.enabled": "false",
            "spark.default.parallelism": "3",
            "spark.lineage.enabled": str(has_lineage).lower(),
            "spark.lineage.kafka.bootstrap.servers": self._bench.servers,
            "spark.lineage.delivery.timeout": "20",
            "spark.lineage.topic.node": self._bench.node_topic,
            "spark.lineage.topic.flow": self._bench.flow_topic,
            **conf,
        }
        arguments = " ".join(f"--conf {name}={value}" for name, value in settings.items())
        own = {name: value for name, value in os.environ.items() if not name.startswith("LINEAGE_")}
        return {
            **own,
            "PYSPARK_SUBMIT_ARGS": f"{arguments} pyspark-shell",
            "PYSPARK_PYTHON": sys.executable,
            "LINEAGE_HOME": str(self.home),
            "LINEAGE_STORE": str(self._bench.folder / "flows"),
            "LINEAGE_KAFKA_BOOTSTRAP_SERVERS": self._bench.servers,
            "LINEAGE_NODE_TOPIC": self._bench.node_topic,
        }

    def run(self, *words: str, environment: Mapping[str, str] | None = None) -> Answer:
        """A command of Python, in the folder of the jobs."""
        ended = subprocess.run(
            [sys.executable, *words],
            cwd=self.folder,
            env=dict(environment or self.environment()),
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        return Answer(ended.returncode, ended.stdout, ended.stderr)

    def checks_of(self, application_id: str, start: StartQuery) -> tuple[ExplanationCheck, ...]:
        """What was recorded of a record, once something is."""
        queries = LineageQueries(self._bench.store, time_budget_s=60)
        query = ExplanationQuery(starts=(start,), plain=False)

        def checks() -> tuple[ExplanationCheck, ...]:
            return queries.explanation(application_id, query).checks

        wait_until(lambda: bool(checks()), self._bench.processes[0])
        return checks()

    def job(self, *words: str) -> str:
        """The id of the application that a job was, once all of its lineage is stored."""
        before = set(self._bench.store.applications())
        self.run(*words)
        queries = LineageQueries(self._bench.store, time_budget_s=60)

        def complete() -> list[str]:
            new = set(self._bench.store.applications()) - before
            return [name for name in new if _is_complete(queries, name)]

        wait_until(lambda: bool(complete()), self._bench.processes[0])
        [application_id] = complete()
        return application_id

    def values_of(self, application_id: str) -> dict[str, list[str]]:
        """The values of records that the store has, by operation."""
        queries = LineageQueries(self._bench.store, time_budget_s=60)
        values: dict[str, list[str]] = {}
        for node in queries.graph(application_id).nodes:
            for record in queries.records(application_id, RecordQuery(node=node.node_id)).records:
                query = TraceQuery(
                    direction="backward", node=str(node.node), record=record.record_id, depth=1, values=True
                )
                [value] = [start.value for start in queries.trace(application_id, query).start]
                if value is not None:
                    values.setdefault(node.name, []).append(value)
        return values

    def replay(self, application_id: str, *words: str, command: Sequence[str]) -> Answer:
        """`lineage replay APP WORDS -- python COMMAND`."""
        return self.lineage("replay", application_id, *words, "--", sys.executable, *command)

    def lineage(self, *words: str) -> Answer:
        return self.run("-m", "lineage_service.cli.main", *words)


def _is_complete(queries: LineageQueries, application_id: str) -> bool:
    try:
        return queries.application(application_id).complete
    except UnknownApplicationError:
        return False


@contextmanager
def replay_bench(kafka: Any, folder: Path, name: str) -> Iterator[ReplayBench]:
    """With `lineage consume` beside it."""
    (folder / "jobs").mkdir()
    for bench in bench_of(kafka, folder, name):
        bench.consume()
        yield ReplayBench(bench, folder / "jobs")


def state_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Each file with its bytes and its time."""
    return {
        str(path.relative_to(folder)): (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
    }


def row_of(folder: Path, text: str) -> str:
    """FILE:LINE of the row of an output that begins so."""
    [place] = [
        f"{path}:{line}"
        for path in sorted(folder.glob("part-*"))
        for line, row in enumerate(path.read_text().splitlines(), 1)
        if row.startswith(text)
    ]
    return place

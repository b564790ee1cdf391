"""Rows that are added until a record comes out again: `lineage explain --sufficient`, as a user runs it.

Of a copy of the store, since its runs are stored, too. Each start takes some runs of the job, so few are
asked.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perf.capture.broker import Broker
from perf.capture.drivers import ROOT, JobError
from perf.explain.asking import Start
from perf.explain.cases import Workload
from perf.explain.stores import Stored
from perf.ingest.members import Process
from perf.ingest.topics import Topics

_ANSWER_S = 900.0
_PACKAGES = [ROOT, *(ROOT / folder for folder in ("api", "cypher", "ui"))]
#: `lineage explain` ends so where it did not reach what was asked.
_NOT_REACHED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Sufficient:
    """Of a start: the rows that gave it again, of which so many were added, in so many runs of the job."""

    is_verified: bool
    rows: int
    added: int
    runs: int
    seconds: float


def sufficient(
    stored: Stored, workload: Workload, chosen: Sequence[Start], run: Path, *, memory: str, jars: Path
) -> list[Sufficient]:
    """Of each start. Raises JobError where the command fails."""
    if not chosen:
        return []
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir(parents=True)
    shutil.copytree(stored.folder / "flows", run / "flows")
    broker = Broker(run / "stack", jars)
    try:
        topics = Topics(broker.bootstrap_servers, "sufficient")
        topics.create()
        settings = ["--home", str(run), "--store", str(run / "flows")]
        reading = ["--kafka-bootstrap-servers", topics.bootstrap_servers, "--consumer-group", "sufficient"]
        reading += ["--node-topic", topics.node, "--flow-topic", topics.flow]
        further = ["--neo4j-uri", "", "--metrics", "false"]
        consumer = Process(["consume", *settings, *reading, *further], run / "consume.log")
        try:
            return [_of_start(stored, workload, start, settings, topics, memory) for start in chosen]
        finally:
            consumer.stop()
    finally:
        broker.stop()
        shutil.rmtree(run, ignore_errors=True)


def _of_start(
    stored: Stored, workload: Workload, start: Start, settings: Sequence[str], topics: Topics, memory: str
) -> Sufficient:
    conf = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": memory,
        "spark.lineage.enabled": "true",
        "spark.lineage.kafka.bootstrap.servers": topics.bootstrap_servers,
        "spark.lineage.delivery.timeout": "60",
        "spark.lineage.topic.node": topics.node,
        "spark.lineage.topic.flow": topics.flow,
    }
    job = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[2]"]
    job += [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
    job += [str(workload.job), *workload.arguments(stored.source, stored.output)]
    place = f"{start.path}:{start.row + 1}"
    command = ["explain", stored.application_id, place, "--sufficient", "--no-plain", "--json", *settings]
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "lineage_service.cli.main", *command, "--", *job],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, _PACKAGES)),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        timeout=_ANSWER_S,
    )
    seconds = round(time.monotonic() - began, 1)
    if done.returncode not in (0, _NOT_REACHED):
        raise JobError(f"lineage explain {place} --sufficient: {done.stderr[-2000:]}")
    answer = json.loads(done.stdout)
    proof = answer["verified"] or {}
    return Sufficient(
        is_verified=bool(proof),
        rows=answer["total"],
        added=proof.get("added", 0),
        runs=proof.get("runs", 0),
        seconds=seconds,
    )

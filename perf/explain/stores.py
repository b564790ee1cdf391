"""Flow stores to explain in: a job with lineage, through Kafka and a consumer. And jobs without it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from perf.capture.broker import Broker
from perf.capture.cases import Case
from perf.capture.drivers import ROOT, JobError
from perf.explain.cases import Workload
from perf.ingest.members import Service
from perf.ingest.topics import Job, Topics

_TIMEOUT_S = 3_600.0
_JOB_S = 1_800.0
_ABOUT = "about.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A folder with `flows` (the store). `job_s` and `stored_s` are seconds, the latter behind the job."""

    folder: Path
    workload: str
    application_id: str
    source: Path
    output: Path
    job_s: float
    stored_s: float
    flows_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Program(Case):
    """A job that is called with these words."""

    words: tuple[str, ...]

    def arguments(self, inputs: list[Path], output: Path) -> list[str]:
        return list(self.words)


def stored(place: Path, workload: Workload, source: Path, *, memory: str, jars: Path) -> Stored:
    """From before, or made now in `place`. Raises JobError."""
    try:
        about = json.loads((place / _ABOUT).read_text())
        return Stored(**about | {name: Path(about[name]) for name in ("folder", "source", "output")})
    except (OSError, ValueError, KeyError, TypeError):
        shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    output = place / "output"
    if workload.before:
        plain_run(workload, source, output, place / "before.log", memory=memory, further=workload.before)
    broker = Broker(place / "stack", jars)
    try:
        built = _built(place, workload, source, output, broker, memory)
    finally:
        broker.stop()
    shutil.rmtree(place / "stack")
    (place / _ABOUT).write_text(json.dumps(asdict(built), default=str))
    return built


def _built(
    place: Path, workload: Workload, source: Path, output: Path, broker: Broker, memory: str
) -> Stored:
    topics = Topics(broker.bootstrap_servers, workload.name)
    topics.create()
    program = _Program(
        name=workload.name,
        title=workload.title,
        job=str(workload.job),
        inputs=(),
        words=tuple(workload.arguments(source, output)),
    )
    began = time.monotonic()
    job = Job(topics, program, [source], is_detailed=False, cores=2, memory=memory, folder=place)
    try:
        captured = job.captured()
        job.wait()
    finally:
        job.stop()
    job_s = time.monotonic() - began
    service = Service(topics, place / "service")
    consumer = service.consume(0)
    began = time.monotonic()
    try:
        topics.wait_until_committed(service.group, captured.ends, _TIMEOUT_S)
    finally:
        consumer.stop()
    stored_s = time.monotonic() - began
    (service.folder / "flows").rename(place / "flows")
    return Stored(
        folder=place,
        workload=workload.name,
        application_id=captured.application_id,
        source=source,
        output=output,
        job_s=round(job_s, 1),
        stored_s=round(stored_s, 1),
        flows_bytes=sum(path.stat().st_size for path in (place / "flows").rglob("*") if path.is_file()),
    )


def plain_run(
    workload: Workload,
    source: Path,
    output: Path,
    log: Path,
    *,
    memory: str,
    further: Sequence[str] | None = None,
) -> None:
    """The job by PySpark as it is, lineage off. Raises JobError."""
    submit = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[2]"]
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.memory": memory,
        "spark.lineage.enabled": "false",
    }.items():
        submit += ["--conf", f"{name}={value}"]
    own = {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with log.open("wb") as file:
        done = subprocess.run(
            [*submit, str(workload.job), *workload.arguments(source, output, further=further)],
            env={**os.environ, **own},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            timeout=_JOB_S,
        )
    if done.returncode:
        raise JobError(f"{workload.job.name} failed without lineage; see {log}")

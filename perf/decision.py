"""What it costs to ask whether a job is worth running, beside what the job costs.

    python -m perf.decision [--rows 1000000] [--asked 7] [--seed 31] [--note TEXT]

A job of `perf/workloads` reads CSV of so many detectors, as its user runs it: by spark-submit, with lineage,
through Kafka and a consumer. Before each wave its input changes and `lineage trigger JOB --bound` is asked.
First come the waves of the training, each of which is run. Behind the test nothing is run, whatever the
answer, and as many waves are asked by the command as by HTTP. Then the job itself is measured. Writes
`perf/results/decision-DATE.json` and `.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyspark
from pyarrow import csv

from perf.capture.__main__ import about_machine
from perf.capture.broker import Broker
from perf.capture.drivers import ROOT, JobError
from perf.ingest.members import Api, Service
from perf.ingest.topics import Topics
from perf.tables import publish, table

JOB = "Air quality"
WORKLOAD = ROOT / "perf" / "workloads" / "air_quality.py"
ZONES, FILES = 24, 10
#: Of those of a wave, so many are added, or all are measured anew.
ADDED, ALL = "1 % of the rows are added", "all rows change"
TERMS = {
    "bound": "0.05",
    "error": "relative:mean",
    "output": "zones",
    "training": "8",
    "confidence": "0.55",
    "audit": "0",
    "horizon": "24",
    "within": "60s",
}
_SKIP, _TIMEOUT_S = 99, 900.0
#: A file that was written later than so long before a question may be written to again.
_SETTLED_S = 3.0
_JOBS = 3
#: What a decision may cost of its job, and for how long it may compute.
MOST_SHARE, MOST_S = 0.02, 1.0
_TRAINING, _TEST, _COMMAND, _HTTP, _AGAIN = "after a run", "with the test", "command", "HTTP", "asked again"


@dataclass(frozen=True, slots=True)
class Asked:
    """`kind` is when and how; CPU and wall in seconds, `seconds` as the answer says it."""

    kind: str
    reason: str
    phase: str
    cpu_s: float
    wall_s: float
    seconds: float


@dataclass(slots=True)
class Case:
    """One way in which the input changes. `jobs`: CPU seconds of each execution."""

    change: str
    asked: list[Asked] = field(default_factory=list)
    jobs: list[float] = field(default_factory=list)

    def cpu_s(self, kind: str) -> list[float]:
        return [one.cpu_s for one in self.asked if one.kind == kind]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m perf.decision", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--asked", type=int, default=7, help="waves by the command, and by HTTP (7)")
    parser.add_argument("--changes", nargs="+", choices=[ADDED, ALL], default=[ADDED, ALL])
    parser.add_argument("--seed", type=int, default=31)
    parser.add_argument("--jars", type=Path, default=ROOT / ".cache" / "lineage" / "jars")
    parser.add_argument("--out", type=Path, default=ROOT / "perf" / "results")
    parser.add_argument("--note", default="")
    options = parser.parse_args(arguments)
    figures = about_machine("perf.decision", options.note)
    figures |= {
        "Spark": f"{pyspark.__version__}, local[2]",
        "Python": platform.python_version(),
        "rows": options.rows,
        "seed": options.seed,
        "terms": " ".join(f"--{name} {value}" for name, value in TERMS.items()),
    }
    with tempfile.TemporaryDirectory(prefix="perf-decision-") as name:
        folder = Path(name)
        broker = Broker(folder / "stack", options.jars)
        try:
            runs = [
                _Run(folder / f"case-{number}", Case(change), broker.bootstrap_servers, options)
                for number, change in enumerate(options.changes)
            ]
            for run in runs:
                run.train()
            print(f"{time.strftime('%H:%M:%S')} all are in charge", file=sys.stderr, flush=True)
            for run in runs:
                run.measure(options.asked)
            cases = [run.case for run in runs]
        finally:
            broker.stop()
    figures["cases"] = [asdict(case) for case in cases]
    publish(options.out, "decision", figures, page(figures, cases))
    return 0


@contextmanager
def consuming(service: Service, number: int) -> Iterator[None]:
    consumer = service.consume(number)
    try:
        yield
    finally:
        consumer.stop()


@contextmanager
def served(service: Service) -> Iterator[Api]:
    api = service.serve()
    try:
        yield api
    finally:
        api.process.stop()


class _Run:
    """Changes the input of a job, asks about one wave after the other, and runs what is to be run.

    Methods raise JobError.
    """

    def __init__(self, folder: Path, case: Case, servers: str, options: argparse.Namespace) -> None:
        folder.mkdir()
        self.case, self._folder = case, folder
        self._topics = Topics(servers, folder.name)
        self._topics.create()
        self._service = Service(self._topics, folder / "service")
        chance = np.random.default_rng(options.seed)
        self._changes = changes(folder / "in", case.change, options.rows, chance)
        self._number, self._phase = 0, ""

    def train(self) -> None:
        with consuming(self._service, 0):
            while self._phase != "application":
                if self._number > 3 * int(TERMS["training"]):
                    raise JobError(f"{JOB} is not in charge after {self._number} waves")
                if self._ask(_TRAINING)["decision"] == "run":
                    self._execute()
        # Of the first wave nothing is known, the second has nothing to be compared with.
        del self.case.asked[:2]
        self.case.asked[-1] = replace(self.case.asked[-1], kind=_TEST)

    def measure(self, asked: int) -> None:
        with consuming(self._service, 1):
            for _ in range(asked):
                self._ask(_COMMAND)
                self._note(_AGAIN, *self._command())  # it reads the answer that there is
            with served(self._service) as api:
                for _ in range(asked + 1):
                    self._ask_over_http(api)
            # The first one over HTTP imports what it needs.
            self.case.asked.remove(next(one for one in self.case.asked if one.kind == _HTTP))
            self.case.jobs.clear()
            for _ in range(_JOBS):
                self._execute()

    def _ask(self, kind: str) -> Mapping[str, Any]:
        """By the command."""
        self._change()
        answer, *took = self._command()
        self._note(kind, answer, *took)
        self._phase = answer["phase"]
        return answer

    def _change(self) -> None:
        next(self._changes)
        time.sleep(_SETTLED_S)
        self._number += 1

    def _command(self) -> tuple[Mapping[str, Any], float, float]:
        terms = [part for name, value in TERMS.items() for part in (f"--{name}", value)]
        settings = ["--home", str(self._folder), "--store", str(self._service.folder / "flows")]
        words = ["trigger", JOB, *settings, *terms, "--wave", f"w{self._number}", "--json"]
        began = time.perf_counter()
        child = subprocess.Popen(
            [sys.executable, "-m", "lineage_service.cli.main", *words],
            cwd=self._folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        assert child.stdout is not None
        said = child.stdout.read()
        cpu_s = _cpu_s(child, (0, _SKIP))
        return json.loads(said), cpu_s, time.perf_counter() - began

    def _environment(self) -> dict[str, str]:
        """That of an installed program: what was imported once is compiled."""
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return {**kept, "PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": str(self._folder.parent / "compiled")}

    def _ask_over_http(self, api: Api) -> None:
        self._change()
        query = urllib.parse.urlencode({**TERMS, "wave": f"w{self._number}"})
        url = f"{api.url}/api/jobs/{urllib.parse.quote(JOB)}/decisions?{query}"
        before, began = api.process.cost().cpu_s, time.perf_counter()
        with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=60) as said:
            answer = json.load(said)
        wall_s = time.perf_counter() - began
        self._note(_HTTP, answer, api.process.cost().cpu_s - before, wall_s)

    def _note(self, kind: str, answer: Mapping[str, Any], cpu_s: float, wall_s: float) -> None:
        asked = Asked(
            kind, answer["reason"], answer["phase"], round(cpu_s, 3), round(wall_s, 3), answer["seconds"]
        )
        self.case.asked.append(asked)
        print(f"{time.strftime('%H:%M:%S')} wave {self._number}: {asked}", file=sys.stderr, flush=True)

    def _execute(self) -> None:
        conf = {
            "spark.ui.enabled": "false",
            "spark.driver.memory": "2g",
            "spark.lineage.enabled": "true",
            "spark.lineage.kafka.bootstrap.servers": self._topics.bootstrap_servers,
            "spark.lineage.delivery.timeout": "60",
            "spark.lineage.topic.node": self._topics.node,
            "spark.lineage.topic.flow": self._topics.flow,
        }
        submit = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[2]"]
        submit += [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
        own = {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        with (self._folder / "job.log").open("wb") as log:
            child = subprocess.Popen(
                [*submit, str(WORKLOAD), str(self._folder / "in"), str(self._folder / "out")],
                cwd=self._folder,
                env={**os.environ, **own},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
            self.case.jobs.append(round(_cpu_s(child, (0,)), 2))
        print(f"{time.strftime('%H:%M:%S')} job: {self.case.jobs[-1]} s of CPU", file=sys.stderr, flush=True)
        self._topics.wait_until_committed(self._service.group, self._topics.ends(), _TIMEOUT_S)


def _cpu_s(child: subprocess.Popen[bytes], codes: Sequence[int]) -> float:
    """Of it and of what it waited for, when it is over. Raises JobError if it failed."""
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in codes:
        raise JobError(f"{child.args!r} ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime


# -- the input -------------------------------------------------------------------------------------------


def changes(folder: Path, change: str, rows: int, rng: np.random.Generator) -> Iterator[None]:
    """The input of one wave after the other, files of CSV."""
    folder.mkdir()
    base, size = _means(rows, rng), rows // FILES
    for number in range(FILES):
        _write(folder, number, size, base)
    yield
    for wave in range(10_000):
        if change == ADDED:
            _write(folder, FILES + wave, rows // 100, _means(rows // 100, rng), rows + wave * (rows // 100))
        else:
            now = base + rng.uniform(-0.3, 0.3, base.shape)
            for number in range(FILES):
                _write(folder, number, size, now)
        yield


def _means(rows: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    return rng.uniform(20, 80, (rows, 3))


def _write(folder: Path, number: int, size: int, numbers: np.ndarray[Any, Any], first: int = -1) -> None:
    """A file of detectors: their numbers, from the first on, are those of the file, or follow one another."""
    at = 0 if first >= 0 else number * size
    of_file = np.round(numbers[at : at + size], 1)
    detectors = np.arange(size) + (first if first >= 0 else at)
    columns = {"detector": detectors, "zone": detectors % ZONES}
    columns |= dict(zip(("ozone", "dust", "dioxide"), of_file.T, strict=True))
    path = folder / f"part-{number:05d}.csv"
    unfinished = path.with_name(f".{path.name}")
    csv.write_csv(pa.table(columns), unfinished, csv.WriteOptions(include_header=False))
    unfinished.replace(path)


# -- the page -------------------------------------------------------------------------------------------


def page(figures: Mapping[str, Any], cases: Sequence[Case]) -> str:
    about = [[key, str(value)] for key, value in figures.items() if isinstance(value, str | int)]
    return f"""# What a decision costs

{table(["", ""], about)}

CPU seconds of `lineage trigger`, medians and ranges. The process is a new one for each question, and its
start is in its seconds. The file system has the input in memory.

{table(["", *(case.change for case in cases)], list(_lines(cases)))}
"""


def _lines(cases: Sequence[Case]) -> Iterator[list[str]]:
    def line(name: str, said: Callable[[Case], str]) -> list[str]:
        return [name, *map(said, cases)]

    yield line("the job, an execution", lambda case: _range(case.jobs))
    for name, kind in (
        ("in charge, by the command", _COMMAND),
        ("in charge, over HTTP", _HTTP),
        ("the same wave again, by the command", _AGAIN),
        ("behind an execution, by the command", _TRAINING),
        ("with the test behind the training", _TEST),
    ):
        yield line(name, lambda case, kind=kind: _range(case.cpu_s(kind)))  # type: ignore[misc]
    yield line("share of the job, by the command", lambda case: _share(case, _COMMAND))
    yield line("share of the job, over HTTP", lambda case: _share(case, _HTTP))
    yield line(
        f"CPU of a job of which it is {MOST_SHARE:.0%}",
        lambda case: f"{statistics.median(case.cpu_s(_COMMAND)) / MOST_SHARE:.0f} s",
    )


def _range(seconds: Sequence[float]) -> str:
    if not seconds:
        return ""
    return f"{statistics.median(seconds):.2f} s ({min(seconds):.2f}-{max(seconds):.2f})"


def _share(case: Case, kind: str) -> str:
    return f"{statistics.median(case.cpu_s(kind)) / statistics.median(case.jobs):.1%}"


if __name__ == "__main__":
    sys.exit(main())

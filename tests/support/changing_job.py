"""A job over real files and a real flow store, wave after wave; Spark is left out, its events are not.

It reads readings of detectors and writes the mean of each region: small files, and a clock of its own, so
that hundreds of waves take seconds.
"""

from __future__ import annotations

import csv
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lineage_service.decode.batches import flow_batch
from lineage_service.lineage import Trigger
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.triggering.learning.terms import terms_of
from lineage_service.triggering.stored_jobs import StoredJobs
from lineage_service.triggering.waves.question import Question
from spark_agent import contract
from spark_agent.contract.program_code import hash_of_files
from tests.support.dataset_applications import Job, dataset, store_all
from tests.support.lineage_messages import block, messages

JOB = "means"
REGIONS, DETECTORS = 4, 40
_HOUR_NS = 3_600 * 10**9
COLUMNS = [{"name": "detector", "type": "string"}, {"name": "reading", "type": "double"}]
REGION = {"name": "region", "type": "string"}
MEANS = [REGION, {"name": "mean", "type": "double"}]


@dataclass
class Clock:
    """Ahead of the machine's. Advances by an hour where it is told to, and by a moment with each look."""

    now_ns: int = field(default_factory=time.time_ns)

    def time_ns(self) -> int:
        self.now_ns += 1_000_000
        return self.now_ns

    def time(self) -> float:
        return self.time_ns() / 1e9

    def hour(self) -> None:
        self.now_ns += _HOUR_NS


@dataclass
class ChangingJob:
    """`readings` (detectors) are what the input says now; `weather` moves them. `has_flows`: its lineage says
    which detectors went into which means. Detectors that are added to the first ones are of one region after
    the other; `has_regions`: the input says of which.
    """

    folder: Path
    clock: Clock
    readings: np.ndarray[Any, Any]
    executions: int = 0
    asked: int = 0
    outputs: list[np.ndarray[Any, Any]] = field(default_factory=list)
    has_flows: bool = False
    has_regions: bool = False

    def __post_init__(self) -> None:
        self.store = DeltaFlowStore(self.folder / "flows")
        self.jobs = StoredJobs(self.store)

    @property
    def input(self) -> Path:
        return self.folder / "in" / "readings.csv"

    @property
    def output(self) -> Path:
        return self.folder / "out"

    @property
    def script(self) -> Path:
        return self.folder / "job.py"

    def means(self) -> np.ndarray[Any, Any]:
        return np.array([self.readings[of].mean() for of in self.detectors()])

    def detectors(self) -> list[np.ndarray[Any, Any]]:
        """Of each region."""
        at = np.arange(len(self.readings))
        region = np.where(at < DETECTORS, at // (DETECTORS // REGIONS), at % REGIONS)
        return [np.flatnonzero(region == one) for one in range(REGIONS)]

    def write_input(self) -> None:
        self.clock.hour()
        rows: list[tuple[str, ...]] = [
            (f"d{at}", f"{value!r}") for at, value in enumerate(self.readings.tolist())
        ]
        header: tuple[str, ...] = ("detector", "reading")
        if self.has_regions:
            region = {int(at): f"r{number}" for number, of in enumerate(self.detectors()) for at in of}
            rows, header = [(*row, region[at]) for at, row in enumerate(rows)], (*header, "region")
        self._write(self.input, header, rows)

    def _write(self, path: Path, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
        path.parent.mkdir(exist_ok=True)
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([header, *rows])
        moment = self.clock.time_ns()
        os.utime(path, ns=(moment, moment))

    def ask(self, wave: str | None = None, **terms: Any) -> Trigger:
        self.clock.hour()
        question = self.question(wave or f"w{self.asked}", **terms)
        self.asked += 1
        return self.jobs.decide(question)

    def question(self, wave: str, **terms: Any) -> Question:
        # Other work on the machine decides nothing.
        usual = {"bound": 0.05, "error": "relative:mean", "keys": ["region"], "within_s": 120}
        return Question(
            job=JOB, wave=wave, at_least_every_s=10**9, is_steady=True, terms=terms_of(**{**usual, **terms})
        )

    def run(self, wave: str | None = None, *, code: str = "v1", writes: bool = True, **ended: Any) -> str:
        """An execution; the id of its application."""
        self.clock.hour()
        self.executions += 1
        self.script.write_text(f"version = {code!r}\n")
        about: dict[str, Any] = {"code": hash_of_files([str(self.script)]), "code_files": [str(self.script)]}
        job = Job(
            f"app-{self.executions}",
            JOB,
            began=self.clock.time_ns() // 1_000_000,
            **about,
            **({} if wave is None else {"wave": wave}),
        )
        read = job.node(
            "source",
            contract.SOURCE,
            name="Scan csv",
            description=str(self.input.parent),
            dataset=dataset(str(self.input.parent), "csv+header"),
            schema=[*COLUMNS, REGION] if self.has_regions else COLUMNS,
        )
        job.tell(
            contract.PARTITIONS,
            node=read,
            partitions=[
                {"split": 0, "parts": [{"path": str(self.input), "first": 0, **_status(self.input)}]}
            ],
        )
        part = self.output / "part-00000.csv"
        means = self.means()
        if writes:
            self._write(
                part, ("region", "mean"), [(f"r{at}", f"{mean!r}") for at, mean in enumerate(means.tolist())]
            )
            self.outputs.append(means)
        parent = job.node("operator", contract.FLOWS, [read]) if self.has_flows else read
        sink = job.write(
            str(self.output), [parent], schema=MEANS, dataset=dataset(str(self.output), "csv+header")
        )
        if self.has_flows:
            detectors = self.detectors()
            columns = {
                "count": [len(of) for of in detectors],
                "in": [int(at) for of in detectors for at in of],
            }
            gathered = block(1, 0, contract.GATHER, columns, node=parent, application_id=job.application_id)
            self.store.write_flows(flow_batch(f"flows/{job.application_id}", messages(gathered)))
            job.run(read, [parent, sink], len(self.readings), REGIONS, action=sink, attempt=1, blocks=1)
        job.tell(
            contract.PARTITIONS,
            node=sink,
            partitions=[{"split": 0, "path": str(part), "start": 0, **_status(part)}],
        )
        job.time = self.clock.time_ns() // 1_000_000
        job.end(**ended)
        store_all(self.store, job)
        return job.application_id


def _status(path: Path) -> dict[str, int]:
    file_state = path.stat()
    return {"size": file_state.st_size, "modified": file_state.st_mtime_ns // 1_000_000}


def changing_job(folder: Path, monkeypatch: pytest.MonkeyPatch, seed: int = 0) -> ChangingJob:
    clock = Clock()
    for module in ("evidence", "file_looks"):
        patched = f"lineage_service.triggering.certain.{module}.time"
        monkeypatch.setattr(patched, _Time(clock))
    readings = np.random.default_rng(seed).uniform(20, 80, DETECTORS)
    return ChangingJob(folder, clock, readings)


class _Time:
    """The module `time`, but for what day it is."""

    def __init__(self, clock: Clock) -> None:
        self.time_ns, self.time = clock.time_ns, clock.time

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

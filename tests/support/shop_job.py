"""A job that sums sales by shop, over real files and a flow store. Spark is left out, its events are not.

Shops with fewer than `LEAST` sales are left out, so a group may be without an output. Its program is a
function of Python, which a probe runs on some rows as Spark would.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lineage_service.lineage import Trigger
from lineage_service.replays.errors import ReplayError
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.triggering.learning.terms import terms_of
from lineage_service.triggering.stored_jobs import StoredJobs
from lineage_service.triggering.waves.question import Question
from spark_agent import contract
from spark_agent.contract.program_code import hash_of_files
from tests.support.changing_job import Clock
from tests.support.dataset_applications import Job, dataset, store_all

JOB, LEAST = "shops", 3
_MINUTE_NS = 60 * 10**9
_INT, _TEXT = "int", "string"
_SALES = [{"name": "id", "type": _INT}, {"name": "shop", "type": _TEXT}, {"name": "amount", "type": _INT}]
_TOTALS = [{"name": "shop", "type": _TEXT}, {"name": "total", "type": "bigint"}]
_AGGREGATE = "[shop], [shop, sum(amount) AS total, count(1) AS n]"


@dataclass(frozen=True)
class RowsRun:
    folders: Mapping[int, str]
    unsure: str = ""
    seconds: float = 1.0


@dataclass
class ShopJob:
    """`sales`: id -> (shop, amount). `totals` is what the program makes of some sales, `describe` how the
    plan says it. `on_rows`: what happens when it runs on some of them.
    """

    folder: Path
    clock: Clock
    sales: dict[int, tuple[str, int]]
    describe: str = _AGGREGATE
    executions: int = 0
    probes: int = 0
    last_output: dict[str, int] = field(default_factory=dict)
    fault: Callable[[dict[str, int]], dict[str, int]] = lambda totals: totals
    on_rows: Callable[[], None] = lambda: None
    unsure: str = ""

    def __post_init__(self) -> None:
        self.store = DeltaFlowStore(self.folder / "flows")
        self.jobs = StoredJobs(self.store)

    @property
    def input(self) -> Path:
        return self.folder / "in"

    @property
    def output(self) -> Path:
        return self.folder / "out"

    def write_input(self) -> None:
        self.clock.hour()
        self.input.mkdir(exist_ok=True)
        ids = sorted(self.sales)
        for at in range(2):
            rows = [f"{id},{self.sales[id][0]},{self.sales[id][1]}\n" for id in ids if id % 2 == at]
            self._write(self.input / f"{at}.csv", "".join(rows))

    def _write(self, path: Path, text: str) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        moment = self.clock.time_ns()
        os.utime(path, ns=(moment, moment))

    @staticmethod
    def totals(folder: Path) -> dict[str, int]:
        amounts: dict[str, list[int]] = defaultdict(list)
        for path in folder.glob("*.csv"):
            for line in path.read_text().splitlines():
                _, shop, amount = line.split(",")
                amounts[shop].append(int(amount))
        return {shop: sum(of_shop) for shop, of_shop in amounts.items() if len(of_shop) >= LEAST}

    def ask(self, wave: str, **terms: Any) -> Trigger:
        self.clock.hour()
        usual = {"bound": 0.01, "error": "relative:total", "keys": ["shop"]}
        question = Question(
            job=JOB,
            wave=wave,
            at_least_every_s=10**9,
            is_steady=True,
            terms=terms_of(**{**usual, **terms}),
        )
        return self.jobs.decide(question, self.run_on_rows, is_patient=True)

    @contextmanager
    def run_on_rows(
        self, application_id: str, write: Callable[[Path], Mapping[str, str]], seconds: float
    ) -> Iterator[RowsRun]:
        self.probes += 1
        folder = self.folder / f"probe-{self.probes}"
        self.on_rows()
        (place,) = write(folder / "in").values()
        self._write_totals(folder / "out", self.totals(Path(place)))
        yield RowsRun({2: str(folder / "out")}, self.unsure)

    def _write_totals(self, folder: Path, totals: Mapping[str, int]) -> Path:
        folder.mkdir(exist_ok=True)
        part = folder / "part-00000.csv"
        self._write(part, "".join(f"{shop},{total}\n" for shop, total in totals.items()))
        return part

    def run(self, wave: str, code: str = "v1") -> None:
        """An execution upon an answer."""
        self.clock.hour()
        self.executions += 1
        script = self.folder / "job.py"
        script.write_text(f"version = {code!r}\n")
        job = Job(
            f"app-{self.executions}",
            JOB,
            began=self.clock.time_ns() // 1_000_000,
            wave=wave,
            code=hash_of_files([str(script)]),
            code_files=[str(script)],
        )
        read = job.node(
            "source",
            contract.SOURCE,
            name="Scan csv",
            description=str(self.input),
            dataset=dataset(str(self.input), "csv", options={}),
            schema=_SALES,
            expressions={"columns": [[1, 2, 3]], "options": {"sep": ","}},
        )
        parts = [
            {"path": str(path), "first": at, **_status(path)}
            for at, path in enumerate(sorted(self.input.glob("*.csv")))
        ]
        job.tell(contract.PARTITIONS, node=read, partitions=[{"split": 0, "parts": parts}])
        keys = {"keys": [{"column": 2, "name": "shop"}], "distinct": False}
        group = job.node(
            "operator",
            contract.CARRIED,
            [read],
            name="Aggregate",
            description=self.describe,
            expressions=keys,
        )
        self.last_output = self.fault(self.totals(self.input))
        part = self._write_totals(self.output, self.last_output)
        sink = job.write(
            str(self.output),
            [group],
            schema=_TOTALS,
            dataset=dataset(str(self.output), "csv", options={}),
            expressions={"columns": [[2, 4]]},
        )
        job.tell(
            contract.PARTITIONS,
            node=sink,
            partitions=[{"split": 0, "path": str(part), "start": 0, **_status(part)}],
        )
        self.clock.now_ns += _MINUTE_NS
        job.time = self.clock.time_ns() // 1_000_000
        store_all(self.store, job.end())

    def crash(self) -> None:
        raise ReplayError("the command ended with exit code 1: boom")


def _status(path: Path) -> dict[str, int]:
    file_state = path.stat()
    return {"size": file_state.st_size, "modified": file_state.st_mtime_ns // 1_000_000}

"""Measures ingestion, from Kafka to queryable, and writes the result as JSON and as Markdown.

    python -m perf.ingest [--quick]

On a Kafka and a Neo4j of its own, with the service's own processes, in this order:
1. WordCount runs with one consumer beside it: how long after its end can every flow be asked for?
2. The same messages, all waiting: one, two and four consumers, into the flow store, and with Neo4j.
3. What traces of the fresh store take, the largest one last, and `lineage maintain`.
4. A small WordCount, and the same with 10 and 100 times its runs: is the cost linear?
5. Batches of one small block, hundreds of them: what does a commit cost?
6. Uniform keys, a join on unique keys, values of every record: how large do stores get?
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from datetime import date
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pyarrow

from lineage_service.cli.stack.down import stop
from lineage_service.cli.stack.up import start
from lineage_service.graph.neo4j_store import Neo4jGraph
from lineage_service.settings import Settings
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.store.tables import TABLES
from perf.capture.__main__ import about_machine
from perf.capture.broker import Broker
from perf.capture.cases import CASES
from perf.capture.drivers import ROOT, JobError
from perf.ingest import report
from perf.ingest.commits import commit_costs
from perf.ingest.members import Api, Process, Service
from perf.ingest.report import Afterwards, CommitCost, Measured, Result
from perf.ingest.topics import Captured, Job, Topics, grow

_TIMEOUT_S = 900.0
TRACES = 20

#: Sizes of inputs in MB: the headline's, the one that is grown, those of the shapes; and the counts.
STANDARD: dict[str, Any] = {
    "megabytes": 500.0,
    "small": 5.0,
    "grow": [1, 10, 100],
    "consumers": [1, 2, 4],
    "shapes": 50.0,
    "detailed": 20.0,
    "commits": 1_000,
}
QUICK: dict[str, Any] = {
    "megabytes": 10.0,
    "small": 1.0,
    "grow": [1, 10],
    "consumers": [1, 2],
    "shapes": 2.0,
    "detailed": 2.0,
    "commits": 100,
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    for name, value in (QUICK if options.quick else STANDARD).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    # What was started is stopped also when this process is told to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    run = options.folder.absolute() / "run-ingest"
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir(parents=True)
    about = _about(options)
    began = time.monotonic()
    with ExitStack() as cleanup:
        broker = Broker(run / "stack", options.jars)
        cleanup.callback(broker.stop)
        graph = start(Settings(home=run / "graph"), only="neo4j", jars=options.jars).servers["neo4j"]
        cleanup.callback(stop, run / "graph")
        with closing(Neo4jGraph(graph.addresses["bolt"])) as first:
            first.migrate()  # once in the life of a database
        about |= {"Kafka": broker.version, "Neo4j": graph.version}
        bench = Bench(options, run, broker, graph.addresses["bolt"])

        def save() -> None:
            about["load at the end"] = " ".join(f"{load:.2f}" for load in os.getloadavg())
            about["took"] = f"{time.monotonic() - began:.0f} s"
            result = Result(
                about=about, measured=bench.measured, afterwards=bench.afterwards, commits=bench.commits
            )
            _write(options.results / options.name, result)

        for part in (bench.headline, bench.growth, bench.small_batches, bench.shapes):
            part()
            save()
    shutil.rmtree(run, ignore_errors=True)
    page = options.results / f"{options.name}.md"
    print(page.read_text())
    print(f"Written to {page} and its .json", file=sys.stderr)
    return 0


class Bench:
    """The measuring loop. What it found is in `measured`, `afterwards` and `commits`."""

    def __init__(self, options: argparse.Namespace, run: Path, broker: Broker, neo4j_uri: str) -> None:
        self._options, self._run, self._broker, self._neo4j_uri = options, run, broker, neo4j_uri
        self._data = options.folder.absolute() / "data"
        self._cases = 0
        self.measured: list[Measured] = []
        self.afterwards: Afterwards | None = None
        self.commits: list[CommitCost] = []

    # -- parts -------------------------------------------------------------------------------------------

    def headline(self) -> None:
        megabytes = self._options.megabytes
        topics = self._topics("wordcount")
        service = self._service(topics)
        consumer, api = service.consume(0), service.serve()
        job = None
        try:
            job = self._job(topics, "wordcount", megabytes)
            captured = job.captured()
            name: dict[str, Any] = {
                "kind": report.BESIDE,
                "case": "wordcount",
                "title": "WordCount",
                "megabytes": megabytes,
            }
            self._finish(captured, service, [consumer], api, captured.ended_at, report.FLOW_STORE, **name)
            job.wait()
        finally:
            for process in (job, consumer, api.process):
                if process is not None:
                    process.stop()
        name["kind"] = report.WAITING
        for stores in (report.FLOW_STORE, report.BOTH):
            for count in self._options.consumers:
                is_last = stores == report.BOTH and count == self._options.consumers[-1]
                after = self._ask if is_last else None
                self._waiting(captured, count, stores, after, **name)

    def growth(self) -> None:
        small = self._captured("small", "wordcount", self._options.small)
        for times in self._options.grow:
            topics = self._topics(f"grown-{times}")
            name = {
                "kind": report.GROWN,
                "case": "wordcount-grown",
                "title": "WordCount, more runs",
                "times": times,
            }
            self._waiting(
                grow(small, times, topics), 1, report.FLOW_STORE, megabytes=self._options.small, **name
            )

    def small_batches(self) -> None:
        batches = self._options.commits
        self.commits = commit_costs(self._run / "commits", batches, batches // 10)

    def shapes(self) -> None:
        for case, title, megabytes, is_detailed in (
            ("wordcount-uniform", "WordCount, uniform keys", self._options.shapes, False),
            ("join", "Join on unique keys", self._options.shapes, False),
            ("wordcount", "WordCount, detailed", self._options.detailed, True),
        ):
            name = f"{case}-detailed" if is_detailed else case
            captured = self._captured(f"shape-{name}", case, megabytes, is_detailed=is_detailed)
            about = {"kind": report.SHAPES, "case": name, "title": title, "megabytes": megabytes}
            self._waiting(captured, 1, report.FLOW_STORE, **about)

    # -- one case ----------------------------------------------------------------------------------------

    def _waiting(
        self,
        captured: Captured,
        count: int,
        stores: str,
        after: Callable[[Captured, Service, Api], None] | None = None,
        **name: Any,
    ) -> None:
        """Consumers that find all messages waiting."""
        service = self._service(captured.topics, self._neo4j_uri if stores == report.BOTH else "")
        api = service.serve()
        consumers: list[Process] = []
        try:
            began = time.time()
            consumers += [service.consume(number) for number in range(count)]
            self._finish(captured, service, consumers, api, began, stores, **name)
            for process in consumers:
                process.stop()
            if after is not None:
                after(captured, service, api)
        finally:
            for process in (*consumers, api.process):
                process.stop()
        shutil.rmtree(service.folder)

    def _finish(
        self,
        captured: Captured,
        service: Service,
        consumers: Sequence[Process],
        api: Api,
        began: float,
        stores: str,
        **name: Any,
    ) -> None:
        """Wait until everything can be asked for, since `began`, and note what it took."""
        captured.topics.wait_until_committed(service.group, captured.ends, _TIMEOUT_S)
        committed_s = time.time() - began
        api.wait_until_complete(captured.application_id, _TIMEOUT_S)
        seconds = time.time() - began
        costs = [consumer.cost() for consumer in consumers]
        stored = _stored(service.store, captured.application_id)
        case = Measured(
            consumers=len(consumers),
            stores=stores,
            input_bytes=captured.input_bytes,
            messages=sum(captured.ends.values()),
            topic_bytes=captured.topics.stored_bytes(self._run / "stack" / "kafka" / "data"),
            seconds=round(seconds, 2),
            committed_s=round(committed_s, 2),
            costs=costs,
            load=round(os.getloadavg()[0], 2),
            **stored,
            **name,
        )
        self.measured.append(case)
        print(
            f"{time.strftime('%H:%M:%S')} {case.title}, {case.megabytes:g} MB x {case.times}, {case.kind}, "
            f"{case.consumers} into {case.stores}: {case.flows:,} flows in {case.seconds:.1f} s, CPU "
            f"{case.cpu_s:.1f} s, {max(cost.peak_mib for cost in costs):.0f} MiB, load {case.load}",
            file=sys.stderr,
            flush=True,
        )

    def _ask(self, captured: Captured, service: Service, api: Api) -> None:
        """Traces of rows that a seed chooses, then `lineage maintain`."""
        assert captured.output is not None
        chosen = random.Random(self._options.seed)
        path = f"/api/applications/{captured.application_id}/trace"
        parts = sorted(captured.output.glob("part-*"))
        rows = {part: part.read_text().splitlines() for part in parts}
        source = self._inputs("wordcount", self._options.megabytes)[0]
        lines = source.stat().st_size // 100  # a line has fewer bytes than that on average
        asked = [
            ("backward", part, chosen.randrange(len(rows[part])))
            for part in chosen.choices([part for part in parts if rows[part]], k=TRACES)
        ]
        asked += [("forward", source, chosen.randrange(lines)) for _ in range(TRACES)]
        asked += [("largest", *_commonest(rows))]
        times: dict[str, list[float]] = {"backward": [], "forward": [], "largest": []}
        largest = 0
        for name, file, row in asked:
            began = time.perf_counter()
            direction = "forward" if name == "forward" else "backward"
            answer = api.get(path, direction=direction, path=file, row=row)
            times[name].append(round(1000 * (time.perf_counter() - began), 1))
            if name == "largest":  # may be more than one question is allowed to take
                largest = sum(node["total"] for node in answer.get("nodes", ()))
            elif not answer.get("complete"):
                raise JobError(f"row {row} of {file} has no complete trace: {answer}")
        serve = api.process.cost()
        before = _stored(service.store, captured.application_id)
        maintain_s, maintain = service.maintain().wait()
        after = _stored(service.store, captured.application_id)
        self.afterwards = Afterwards(
            case="WordCount",
            megabytes=self._options.megabytes,
            flows=before["flows"],
            backward_ms=times["backward"],
            forward_ms=times["forward"],
            largest_ms=times["largest"][0],
            largest=largest,
            serve=serve,
            maintain_s=round(maintain_s, 2),
            maintain=maintain,
            files_before=sum(before["files"].values()),
            files_after=sum(after["files"].values()),
            bytes_before=sum(before["store_bytes"].values()),
            bytes_after=sum(after["store_bytes"].values()),
        )

    # -- what it needs -----------------------------------------------------------------------------------

    def _topics(self, name: str) -> Topics:
        topics = Topics(self._broker.bootstrap_servers, name)
        topics.create()
        return topics

    def _service(self, topics: Topics, neo4j_uri: str = "") -> Service:
        self._cases += 1
        return Service(topics, self._run / f"case-{self._cases}", neo4j_uri)

    def _inputs(self, case: str, megabytes: float) -> list[Path]:
        return [source.file(self._data, megabytes, self._options.seed) for source in CASES[case].inputs]

    def _job(self, topics: Topics, case: str, megabytes: float, *, is_detailed: bool = False) -> Job:
        return Job(
            topics,
            CASES[case],
            self._inputs(case, megabytes),
            is_detailed=is_detailed,
            cores=self._options.cores,
            memory=self._options.memory,
            folder=self._run,
        )

    def _captured(self, name: str, case: str, megabytes: float, *, is_detailed: bool = False) -> Captured:
        job = self._job(self._topics(name), case, megabytes, is_detailed=is_detailed)
        try:
            captured = job.captured()
            job.wait()
        finally:
            job.stop()
        return captured


def _commonest(rows: dict[Path, list[str]]) -> tuple[Path, int]:
    """File and row of the word that came most often: ('word1', 42) says how often."""
    counts = {
        (part, at): int(row.rpartition(",")[2].strip(" )"))
        for part, captured in rows.items()
        for at, row in enumerate(captured)
    }
    return max(counts, key=counts.__getitem__)


def _stored(store: DeltaFlowStore, application_id: str) -> dict[str, Any]:
    """Flows, rows, bytes, files and commits of an application that is alone in its store."""
    files = {name: store.files(name, application_id) for name in TABLES}
    store_bytes = {name: sum(Path(file).stat().st_size for file in files[name]) for name in TABLES}
    with duckdb.connect() as database:
        flows, rows = database.execute(
            "SELECT sum(widest)::BIGINT, sum(rows)::BIGINT FROM (SELECT max(flows) AS widest, sum(rows) AS "
            "rows FROM (SELECT run, sum(out_count) AS flows, count(*) AS rows FROM "
            f"read_parquet({files['flows']!r}, hive_partitioning = false) GROUP BY run, node) GROUP BY run)"
        ).fetchall()[0]
    return {
        "flows": flows,
        "rows": rows,
        "store_bytes": store_bytes,
        "files": {name: len(files[name]) for name in TABLES},
        "commits": sum(store.version()),
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m perf.ingest",
        description="Measures how fast lineage gets from Kafka into the stores, what that takes, and how "
        "large it is there.",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: a try, not a measurement")
    numbers = {
        "megabytes": "of the WordCount that everything is asked of",
        "small": "of the WordCount that is grown",
        "shapes": "of the jobs with uniform keys and unique keys",
        "detailed": "of the WordCount with values",
    }
    for name, help_ in numbers.items():
        parser.add_argument(
            f"--{name}", type=float, metavar="MB", help=f"size {help_} (default: {STANDARD[name]:g})"
        )
    parser.add_argument(
        "--commits", type=int, metavar="N", help=f"batches of one block (default: {STANDARD['commits']})"
    )
    for name, help_ in (("grow", "how many times its runs"), ("consumers", "numbers of consumers")):
        parser.add_argument(
            f"--{name}", type=int, nargs="+", metavar="N", help=f"{help_} (default: {STANDARD[name]})"
        )
    parser.add_argument("--seed", type=int, default=1, help="of inputs and questions (default: 1)")
    parser.add_argument("--cores", type=int, default=2, help="of the jobs: local[N] (default: 2)")
    parser.add_argument("--memory", default="2g", help="spark.driver.memory (default: 2g)")
    parser.add_argument("--name", default=f"ingest-{date.today()}", help="of the result files")
    parser.add_argument("--note", default="", help="a sentence for the result, such as what else was running")
    for name, folder, help_ in (
        ("results", ROOT / "perf" / "results", "for the result files"),
        ("folder", ROOT / ".cache" / "perf", "for inputs, which are kept, and the rest, which is not"),
        ("jars", ROOT / ".cache" / "lineage" / "jars", "where the jars of Kafka and Neo4j are or go"),
    ):
        parser.add_argument(f"--{name}", type=Path, default=folder, metavar="FOLDER", help=help_)
    return parser


def _about(options: argparse.Namespace) -> dict[str, Any]:
    return {
        **about_machine("perf.ingest", options.note),
        "jobs": f"local[{options.cores}], driver memory {options.memory}, seed {options.seed}",
        "deltalake": deltalake.__version__,
        "pyarrow": pyarrow.__version__,
        "DuckDB": duckdb.__version__,
        "Python": platform.python_version(),
    }


def _write(path: Path, result: Result) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_name(f"{path.name}.json").write_text(json.dumps(report.as_json(result), indent=1) + "\n")
    path.with_name(f"{path.name}.md").write_text(report.markdown(result))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except JobError as error:
        sys.exit(f"perf.ingest: {error}")

"""Measures what traces take over HTTP, and writes the result as JSON and as Markdown.

    python -m perf.trace [--quick]

Of WordCount in three sizes and of a join: each captured by a real job and consumed into a flow store, which
is kept for the next time. For each store, a `lineage serve` of its own answers questions that a seed chooses:
1. once each, by one user: what it reads for the first time, though the system may have it in memory;
2. the same again;
3. all of them by sixteen users at once;
4. the same after `lineage maintain`, on a copy, by a new process.
Then the smallest WordCount is put into Neo4j, whole, and the same ways are asked for there.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import date
from pathlib import Path
from statistics import median

import neo4j
import pyarrow

import lineage_cypher
from lineage_service.cli.stack.down import stop
from lineage_service.cli.stack.up import start
from lineage_service.graph.neo4j_store import Neo4jGraph
from lineage_service.graph_export.applications import GraphExport
from lineage_service.settings import Settings
from lineage_service.store.flow_store import DeltaFlowStore
from perf.capture.__main__ import about_machine
from perf.capture.drivers import ROOT, JobError
from perf.ingest.members import Api, Process
from perf.trace import asking, questions, report
from perf.trace.questions import Question
from perf.trace.report import InNeo4j, Measured, Opened, Result
from perf.trace.stores import Store, build_store

CASES = (("wordcount", 5.0), ("wordcount", 50.0), ("wordcount", 500.0), ("join", 100.0))
QUICK = (("wordcount", 1.0), ("join", 1.0))
USERS = 16


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    folder = options.folder.absolute()
    cases = QUICK if options.quick else CASES
    stores = [
        build_store(
            folder / "stores", name, megabytes, seed=options.seed, data=folder / "data", jars=options.jars
        )
        for name, megabytes in cases
    ]
    bench = Bench(folder / "run-trace", options.seed, options.questions)
    about = about_machine("perf.trace", options.note) | {
        "seed": options.seed,
        "pyarrow": pyarrow.__version__,
        "Python": platform.python_version(),
    }
    for store in stores:
        bench.measure(store)
    if not options.no_neo4j:
        bench.compare(stores[0], options.jars)
    about["load at the end"] = " ".join(f"{load:.2f}" for load in os.getloadavg())
    result = Result(about=about, measured=bench.measured, opened=bench.opened, neo4j=bench.neo4j)
    options.results.mkdir(parents=True, exist_ok=True)
    path = options.results / options.name
    path.with_name(f"{path.name}.json").write_text(json.dumps(report.as_json(result), indent=1) + "\n")
    page = path.with_name(f"{path.name}.md")
    page.write_text(report.markdown(result))
    print(page.read_text())
    return 0


class Bench:
    """The measuring. What it found is in `measured`, `opened` and `neo4j`."""

    def __init__(self, run: Path, seed: int, count: int) -> None:
        self._run, self._seed, self._count = run, seed, count
        self.measured: list[Measured] = []
        self.opened: list[Opened] = []
        self.neo4j: list[InNeo4j] = []

    def measure(self, store: Store) -> None:
        asked = self._questions(store)
        self._state(store, store.folder / "flows", report.FRESH, asked)
        shutil.rmtree(self._run, ignore_errors=True)
        copy = self._run / "flows"
        shutil.copytree(store.folder / "flows", copy)
        Process(["maintain", *_settings(self._run, copy)], self._run / "maintain.log").wait()
        self._state(store, copy, report.MAINTAINED, asked)
        shutil.rmtree(self._run, ignore_errors=True)

    def _questions(self, store: Store) -> list[Question]:
        make = questions.join if store.case == "join" else questions.wordcount
        return make(store, self._seed, self._count)

    def _state(self, store: Store, flows: Path, state: str, asked: Sequence[Question]) -> None:
        name = f"{store.case}, {store.megabytes:g} MB"
        count = _flows(flows, store.application_id)
        serve = _serve(self._run / "serve", flows)
        mixed = list(asked)
        random.Random(self._seed).shuffle(mixed)
        try:
            began = time.perf_counter()
            serve.get(f"/api/applications/{store.application_id}")
            open_ms = 1000 * (time.perf_counter() - began)
            for way, times in (
                (report.FIRST, asking.one_after_the_other(serve.url, asked)),
                (report.AGAIN, asking.one_after_the_other(serve.url, asked)),
                (report.SIXTEEN, asking.at_once(serve.url, mixed, USERS)),
            ):
                for kind in questions.kinds(asked):
                    ms = [round(duration, 2) for duration in times[kind]]
                    self.measured.append(
                        Measured(store=name, flows=count, state=state, way=way, kind=kind, ms=ms)
                    )
                medians = {kind: f"{median(durations):.0f}" for kind, durations in times.items()}
                print(f"{time.strftime('%H:%M:%S')} {name}, {state}, {way}: {medians}", file=sys.stderr)
            peak = serve.process.cost().peak_mib
            self.opened.append(Opened(store=name, state=state, open_ms=round(open_ms, 1), peak_mib=peak))
        finally:
            serve.process.stop()

    def compare(self, store: Store, jars: Path) -> None:
        """Backward from rows of a small store, here and in Neo4j, five times each."""
        asked = [query for query in self._questions(store) if query.kind.startswith("backward")]
        chosen = {query.kind: query for query in asked}
        shutil.rmtree(self._run, ignore_errors=True)
        home = self._run / "graph"
        server = start(Settings(home=home), only="neo4j", jars=jars).servers["neo4j"]
        serve = _serve(self._run / "serve", store.folder / "flows")
        try:
            with (
                closing(Neo4jGraph(server.addresses["bolt"])) as graph,
                neo4j.GraphDatabase.driver(server.addresses["bolt"]) as driver,
            ):
                flows = DeltaFlowStore(store.folder / "flows")
                graph.write_events(flows.events(store.application_id))
                if not GraphExport(lambda: flows, graph, 10**9).look():
                    raise JobError("the run did not come into Neo4j")
                user = asking.User(serve.url)
                for kind, question in chosen.items():
                    answers = [user.ask(question) for _ in range(6)]
                    answer = answers[0][1]
                    start_id = f"{answer['start_node']}#{answer['start'][0]['record_id']}"
                    times = []
                    for _ in range(6):
                        began = time.perf_counter()
                        driver.execute_query(lineage_cypher.statement("show/backward"), flowId=start_id)
                        times.append(1000 * (time.perf_counter() - began))
                    self.neo4j.append(
                        InNeo4j(
                            word=kind.partition(", ")[2],
                            sources=answer["nodes"][-1]["total"],
                            ours_ms=round(median(took for took, _ in answers[1:]), 2),
                            neo4j_ms=round(median(times[1:]), 2),
                        )
                    )
                user.close()
        finally:
            serve.process.stop()
            stop(home)
        shutil.rmtree(self._run, ignore_errors=True)


def _settings(home: Path, flows: Path) -> list[str]:
    return ["--home", str(home), "--store", str(flows), "--neo4j-uri", ""]


def _serve(home: Path, flows: Path) -> Api:
    home.mkdir(parents=True, exist_ok=True)
    (home / "api.json").unlink(missing_ok=True)
    command = ["serve", *_settings(home, flows), "--api-port", "0", "--metrics", "false"]
    return Api(Process(command, home / "serve.log"), home / "api.json")


def _flows(flows: Path, application_id: str) -> int:
    """What the largest node has: a word that a flatMap made and a combine took is one flow."""
    receipts = DeltaFlowStore(flows).table("blocks", application_id)
    by_node = receipts.group_by("node").aggregate([("rows", "sum")])
    return int(max(by_node["rows_sum"].to_pylist()))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m perf.trace", description="Measures what traces take over HTTP."
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: a try, not a measurement")
    parser.add_argument("--questions", type=int, default=40, metavar="N", help="of each kind (default: 40)")
    parser.add_argument("--no-neo4j", action="store_true", help="leave the comparison with Neo4j out")
    parser.add_argument("--seed", type=int, default=1, help="of inputs and questions (default: 1)")
    parser.add_argument("--name", default=f"trace-{date.today()}", help="of the result files")
    parser.add_argument("--note", default="", help="a sentence for the result, such as what else was running")
    for name, folder, help_ in (
        ("results", ROOT / "perf" / "results", "for the result files"),
        ("folder", ROOT / ".cache" / "perf", "for inputs and stores, which are kept"),
        ("jars", ROOT / ".cache" / "lineage" / "jars", "where the jars of Kafka and Neo4j are or go"),
    ):
        parser.add_argument(f"--{name}", type=Path, default=folder, metavar="FOLDER", help=help_)
    return parser


if __name__ == "__main__":
    try:
        sys.exit(main())
    except JobError as error:
        sys.exit(f"perf.trace: {error}")

"""Measures the API under load, and writes the result as JSON and as Markdown.

    python -m perf.api [--quick]

1. WordCount runs with lineage, through a Kafka of its own, into a flow store; then both are stopped.
2. `lineage serve` is started over the store and asked every kind of question once.
3. Sixteen clients ask for a minute, questions that a seed chooses.
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
from collections.abc import Sequence
from contextlib import closing
from datetime import date
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import duckdb
import fastapi
import uvicorn

from perf.api import report
from perf.api.clients import Question, answered, ask, target
from perf.api.report import Result
from perf.capture.__main__ import about_machine
from perf.capture.broker import Broker
from perf.capture.cases import CASES
from perf.capture.drivers import ROOT, JobError
from perf.ingest.members import Api, Service
from perf.ingest.topics import Captured, Job, Topics

_TIMEOUT_S = 900.0
#: Different questions of each kind, and of a quick try.
_POOL, _QUICK_POOL = 200, 20
_PAGE = 100

#: Kind of question -> how often it is asked, in a hundred.
WEIGHTS = {
    "applications": 10,
    "application": 5,
    "application, held (304)": 5,
    "graph": 10,
    "records": 20,
    "records by key": 10,
    "trace backward": 15,
    "trace forward": 15,
    "values": 10,
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    megabytes = options.megabytes or (5.0 if options.quick else 100.0)
    seconds = options.seconds or (10.0 if options.quick else 60.0)
    # What was started is stopped also when this process is told to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    run = options.folder.absolute() / "run-api"
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir(parents=True)
    about = _about(options, megabytes)
    captured, service = _stored(options, run, megabytes, about)
    api = service.serve()
    try:
        pool = _questions(captured, api, options.seed, _QUICK_POOL if options.quick else _POOL)
        about["slowest trace"] = _once(api, pool)
        before = api.process.cost()
        answers = ask(api.url, pool, WEIGHTS, options.clients, seconds, options.seed)
        cost = api.process.cost()
    finally:
        api.process.stop()
    about["load at the end"] = " ".join(f"{load:.2f}" for load in os.getloadavg())
    result = Result(
        about=about,
        clients=options.clients,
        seconds=seconds,
        rows=report.rows_of(answers, list(WEIGHTS)),
        wrong=report.wrong_of(answers),
        cpu_s=round(cost.cpu_s - before.cpu_s, 1),
        peak_mib_before=before.peak_mib,
        peak_mib=cost.peak_mib,
    )
    page = options.results / f"{options.name}.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.with_suffix(".json").write_text(json.dumps(report.as_json(result), indent=1) + "\n")
    page.write_text(report.markdown(result))
    shutil.rmtree(run, ignore_errors=True)
    print(page.read_text())
    print(f"Written to {page} and its .json", file=sys.stderr)
    return int(result.rows[-1].errors > report.ERRORS)


def _stored(
    options: argparse.Namespace, run: Path, megabytes: float, about: dict[str, Any]
) -> tuple[Captured, Service]:
    """A WordCount with all of its lineage in a flow store, where nothing runs any more."""
    inputs = [
        source.file(options.folder.absolute() / "data", megabytes, options.seed)
        for source in CASES["wordcount"].inputs
    ]
    broker = Broker(run / "stack", options.jars)
    try:
        about["Kafka"] = broker.version
        topics = Topics(broker.bootstrap_servers, "api")
        topics.create()
        service = Service(topics, run / "service")
        job = Job(
            topics,
            CASES["wordcount"],
            inputs,
            is_detailed=options.detailed,
            cores=options.cores,
            memory=options.memory,
            folder=run,
        )
        consumer, api = service.consume(0), service.serve()
        try:
            captured = job.captured()
            job.wait()
            api.wait_until_complete(captured.application_id, _TIMEOUT_S)
        finally:
            for process in (job, consumer, api.process):
                process.stop()
    finally:
        broker.stop()
    return captured, service


def _questions(captured: Captured, api: Api, seed: int, size: int) -> list[Question]:
    """So many of each kind, of rows, words and operations that the seed chooses."""
    assert captured.output is not None
    chance, app = random.Random(seed), f"/api/applications/{captured.application_id}"
    graph = api.get(f"{app}/graph")
    nodes = {node["kind"]: str(node["node"]) for node in graph["nodes"]}
    operators = [str(node["node"]) for node in graph["nodes"]]
    source = next(node["dataset"]["name"] for node in graph["nodes"] if node["kind"] == "source")
    rows = Path(source).read_bytes().count(b"\n")
    outputs = [
        (part, at)
        for part in sorted(captured.output.glob("part-*"))
        for at in range(part.read_bytes().count(b"\n"))
    ]
    keyed, keys = _keys(api, app, operators)
    tag = _tag(api, app)

    def request(kind: str) -> tuple[str, dict[str, Any]]:
        part, at = chance.choice(outputs)
        asked: dict[str, tuple[str, dict[str, Any]]] = {
            "applications": ("/api/applications", {}),
            "application": (app, {}),
            "application, held (304)": (app, {}),
            "graph": (f"{app}/graph", {}),
            "records": (f"{app}/nodes/{chance.choice(operators)}/records", {"limit": _PAGE}),
            "records by key": (f"{app}/nodes/{keyed}/records", {"key": chance.choice(keys), "limit": _PAGE}),
            "trace backward": (
                f"{app}/trace",
                {"direction": "backward", "path": part, "row": at, "limit": _PAGE},
            ),
            "trace forward": (
                f"{app}/trace",
                {"direction": "forward", "path": source, "row": chance.randrange(rows), "limit": _PAGE},
            ),
            "values": (
                f"{app}/values",
                {"node": nodes["sink"], "record": f"write#{int(part.name[-5:])}#{at}"},
            ),
        }
        return asked[kind]

    return [
        Question(
            kind=kind,
            target=target(path, **parameters),
            headers={"If-None-Match": tag} if "304" in kind else {},
        )
        for kind in WEIGHTS
        for path, parameters in (request(kind) for _ in range(size))
    ]


def _keys(api: Api, app: str, nodes: Sequence[str]) -> tuple[str, list[str]]:
    """The last operation whose records have keys, and a thousand of these. Raises JobError."""
    for node in reversed(nodes):
        records = api.get(f"{app}/nodes/{node}/records", limit=1_000)["records"]
        keys = [record["key"] for record in records if "key" in record]
        if keys:
            return node, keys
    raise JobError(f"no operation of {app} has keys")


def _tag(api: Api, path: str) -> str:
    with closing(HTTPConnection(api.url.removeprefix("http://"))) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        return answer.getheader("ETag", "")


def _once(api: Api, pool: Sequence[Question]) -> str:
    """Every kind asked once; what the slowest of the questions to come takes when nobody else asks."""
    with closing(HTTPConnection(api.url.removeprefix("http://"), timeout=_TIMEOUT_S)) as connection:
        for kind in WEIGHTS:
            first = answered(connection, next(request for request in pool if request.kind == kind))
            if first.wrong:
                raise JobError(f"{kind}: {first.wrong}")
        traces = [request for request in pool if request.kind == "trace backward"]
        slowest = max((answered(connection, request) for request in traces), key=lambda request: request.ms)
    return f"{slowest.ms:,.0f} ms, of the {len(traces)} backward traces, when nobody else asks{slowest.wrong}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m perf.api",
        description="Measures what many clients get from `lineage serve` at the same time.",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: a try, not a measurement")
    parser.add_argument(
        "--megabytes", type=float, metavar="MB", help="size of the WordCount's input (default: 100)"
    )
    parser.add_argument("--seconds", type=float, metavar="S", help="how long the clients ask (default: 60)")
    parser.add_argument("--clients", type=int, default=16, metavar="N", help="(default: 16)")
    parser.add_argument("--detailed", action="store_true", help="capture the values of all records")
    parser.add_argument("--seed", type=int, default=1, help="of inputs and questions (default: 1)")
    parser.add_argument("--cores", type=int, default=2, help="of the job: local[N] (default: 2)")
    parser.add_argument("--memory", default="2g", help="spark.driver.memory (default: 2g)")
    parser.add_argument("--name", default=f"api-{date.today()}", help="of the result files")
    parser.add_argument("--note", default="", help="a sentence for the result, such as what else was running")
    for name, folder, help_ in (
        ("results", ROOT / "perf" / "results", "for the result files"),
        ("folder", ROOT / ".cache" / "perf", "for inputs, which are kept, and the rest, which is not"),
        ("jars", ROOT / ".cache" / "lineage" / "jars", "where the jars of Kafka are or go"),
    ):
        parser.add_argument(f"--{name}", type=Path, default=folder, metavar="FOLDER", help=help_)
    return parser


def _about(options: argparse.Namespace, megabytes: float) -> dict[str, Any]:
    detailed = "with the values of all records" if options.detailed else "without values"
    return {
        **about_machine("perf.api", options.note),
        "store": f"WordCount, {megabytes:g} MB, {detailed}, seed {options.seed}, as consumed",
        "FastAPI": fastapi.__version__,
        "uvicorn": uvicorn.__version__,
        "DuckDB": duckdb.__version__,
        "Python": platform.python_version(),
    }


if __name__ == "__main__":
    began = time.monotonic()
    try:
        code = main()
    except JobError as error:
        sys.exit(f"perf.api: {error}")
    print(f"It took {time.monotonic() - began:.0f} s", file=sys.stderr)
    sys.exit(code)

"""Measures how long the rewriting of DataFrame queries takes on the driver.

    python -m perf.rewriting [--rounds 10] [--sessions 3] [--out perf/results]

For each query, in sessions of its own with lineage on and a Kafka beside them:
1. A new process makes a session and runs the query: the first one of a session, in a JVM that is cold.
2. The same session runs it again, for as many rounds.
Counted are the milliseconds from the planner's call to the answer, and what was sent over py4j meanwhile,
added up over all plans that Spark made for one run of the query. Writes rewriting-DATE.json and .md.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from perf.capture.__main__ import about_machine
from perf.capture.broker import Broker
from perf.capture.cases import CASES, WORKLOADS, Case
from perf.capture.drivers import ROOT
from perf.tables import publish, table

SEED = 20_261_122
MEGABYTES = 0.1
TARGET_MS = 100
COLUMNS = 100
_SESSION_S = 600


def _join_with_groups(folder: Path, output: Path) -> None:
    from pyspark.sql import functions as F

    left, right = (_spark().read.parquet(str(folder / name)) for name in ("left", "right"))
    joined = left.join(right, "k").where("id > 3")
    joined.groupBy("k").agg(F.sum("id"), F.countDistinct("t")).orderBy("k").collect()


def _wide(folder: Path, output: Path) -> None:
    _spark().read.parquet(str(folder / "wide")).where("c0 > 3").write.csv(str(output))


#: What is no job of perf/workloads.
OTHERS: Mapping[str, tuple[str, Callable[[Path, Path], None]]] = {
    "join-with-groups": ("Join with groups and a distinct count", _join_with_groups),
    "wide": (f"Filter of {COLUMNS} columns", _wide),
}
JOBS: Mapping[str, Case] = {name: case for name, case in CASES.items() if name.startswith("dataframe-")}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m perf.rewriting", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10, help="runs behind a session's first (default: 10)")
    parser.add_argument("--sessions", type=int, default=3, help="of each query (default: 3)")
    parser.add_argument("--note", default="", help="a sentence for the result")
    parser.add_argument("--folder", type=Path, default=Path(".cache/perf"), help="of inputs and of the run")
    parser.add_argument("--jars", type=Path, default=Path(".cache/lineage/jars"), help="of Kafka's jars")
    parser.add_argument("--out", type=Path, default=Path("perf/results"), help="folder of the results")
    parser.add_argument("--session", help=argparse.SUPPRESS)  # the process that is measured: what it runs
    options = parser.parse_args(argv)
    if options.session:
        return session(json.loads(options.session))
    folder = options.folder.absolute() / "run-rewriting"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with ExitStack() as cleanup:
        figures = measured(folder, options, cleanup)
    shutil.rmtree(folder)
    publish(options.out, "rewriting", figures, page(figures))
    return 0


# -- the process that is measured --------------------------------------------------------------------


def session(asked: dict[str, Any]) -> int:
    """Run one query again and again in one session; what each run took goes to the file `asked["answer"]`."""
    from pyspark.sql import SparkSession

    stop, rewritings = SparkSession.stop, _told()
    builder = SparkSession.builder
    for name, value in asked["conf"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    SparkSession.stop = lambda self: None  # the jobs stop their session; this one stays
    runs = []
    for number in range(asked["runs"]):
        rewritings.clear()
        _run(asked, Path(asked["folder"], f"output-{number}"))
        runs.append({name: sum(rewriting[name] for rewriting in rewritings) for name in ("ms", "calls")})
        if not any(rewriting["is_rewritten"] for rewriting in rewritings):
            raise RuntimeError(f"no plan of {asked['query']} was rewritten")
    stop(spark)
    Path(asked["answer"]).write_text(json.dumps(runs))
    return 0


def _told() -> list[dict[str, Any]]:
    """A list to which each call of the planner adds its milliseconds and what it sent over py4j."""
    from py4j.clientserver import ClientServerConnection

    from spark_agent.sql.runtime.queries import Queries

    rewritings: list[dict[str, Any]] = []
    sent = [0]
    send, rewrite = ClientServerConnection.send_command, Queries.rewrite

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        sent[0] += 1
        return send(self, *args, **kwargs)

    def timed(self: Queries, plan: Any, entry: str) -> Any:
        began, before = time.perf_counter(), sent[0]
        rewritten = rewrite(self, plan, entry)
        took = 1000 * (time.perf_counter() - began)
        rewritings.append({"ms": took, "calls": sent[0] - before, "is_rewritten": rewritten is not None})
        return rewritten

    setattr(ClientServerConnection, "send_command", counted)  # noqa: B010 - a type checker forbids the assignment
    setattr(Queries, "rewrite", timed)  # noqa: B010
    return rewritings


def _run(asked: dict[str, Any], output: Path) -> None:
    case = JOBS.get(asked["query"])
    if case is None:
        OTHERS[asked["query"]][1](Path(asked["folder"]).parent, output)
        return
    sys.argv = [case.job, *case.arguments([Path(path) for path in asked["inputs"]], output)]
    runpy.run_path(str(WORKLOADS / case.job), run_name="__main__")


def _spark() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


# -- the sessions -------------------------------------------------------------------------------------


def measured(folder: Path, options: argparse.Namespace, cleanup: ExitStack) -> dict[str, Any]:
    import pyspark

    about = about_machine("perf.rewriting", options.note)
    broker = Broker(folder / "stack", options.jars)
    cleanup.callback(broker.stop)
    _write_tables(folder)
    data = options.folder.absolute() / "data"
    queries = {}
    for name, title in [
        *((name, case.title) for name, case in JOBS.items()),
        *((name, title) for name, (title, _) in OTHERS.items()),
    ]:
        inputs = (
            [str(source.file(data, MEGABYTES, SEED)) for source in JOBS[name].inputs] if name in JOBS else []
        )
        sessions = []
        for number in range(options.sessions):
            sessions.append(
                _session(folder / f"{name}-{number}", name, inputs, broker, runs=options.rounds + 1)
            )
            print(f"{time.strftime('%H:%M:%S')} {name}: {_as_text(sessions[-1])}", file=sys.stderr)
        queries[name] = {"title": title, "sessions": sessions}
    return {
        **about,
        "Spark": f"{pyspark.__version__}, local[2]",
        "load at the end": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "sessions of each query": options.sessions,
        "runs of a session": options.rounds + 1,
        "queries": queries,
    }


def _session(folder: Path, query: str, inputs: list[str], broker: Broker, *, runs: int) -> Any:
    """What each run of one session took."""
    folder.mkdir()
    answer = folder / "answer.json"
    conf = {
        "spark.master": "local[2]",
        "spark.app.name": f"rewriting: {query}",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.lineage.enabled": "true",
        "spark.lineage.kafka.bootstrap.servers": broker.bootstrap_servers,
    }
    asked = {
        "query": query,
        "inputs": inputs,
        "conf": conf,
        "folder": str(folder),
        "answer": str(answer),
        "runs": runs,
    }
    with (folder / "log").open("wb") as log:
        subprocess.run(
            [sys.executable, "-m", "perf.rewriting", "--session", json.dumps(asked)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
            timeout=_SESSION_S,
            check=True,
        )
    return json.loads(answer.read_text())


def _write_tables(folder: Path) -> None:
    """The inputs of `OTHERS`."""
    numbers = range(100)
    keys = [number % 7 for number in numbers]
    tables: dict[str, dict[str, Iterable[Any]]] = {
        "left": {"id": numbers, "k": keys, "s": map(str, numbers)},
        "right": {"i2": numbers, "k": keys, "t": map(str, numbers)},
        "wide": {f"c{column}": numbers for column in range(COLUMNS)},
    }
    for name, columns in tables.items():
        (folder / name).mkdir()
        pq.write_table(
            pa.table({column: list(values) for column, values in columns.items()}),
            folder / name / "part-0.parquet",
        )


# -- the result ---------------------------------------------------------------------------------------


def page(figures: dict[str, Any]) -> str:
    rows = []
    for query in figures["queries"].values():
        first = [runs[0] for runs in query["sessions"]]
        later = [run for runs in query["sessions"] for run in runs[1:]]
        rows.append(
            [
                query["title"],
                _span([figures["ms"] for figures in first]),
                _span([figures["ms"] for figures in later]),
                _span([figures["calls"] for figures in first]),
                _span([figures["calls"] for figures in later]),
            ]
        )
    head = ["query", "first of a session, ms", "later ones, ms", "py4j calls, first", "py4j calls, later"]
    about = "\n".join(f"- {name}: {value}" for name, value in figures.items() if name != "queries")
    return "\n".join(
        [
            "# What the rewriting of DataFrame queries takes",
            "",
            "Milliseconds of the driver in which a query waits for its plan, added up over all plans of one "
            "run of it, made by `python -m perf.rewriting`. Median and range: of the first query of each "
            "session, in a JVM of its own, and of all others, which should take no more than "
            f"{TARGET_MS} ms. Calls are all that Python sent to the JVM meanwhile, to release objects, too.",
            "",
            table(head, rows),
            "",
            about,
            "",
        ]
    )


def _as_text(runs: list[dict[str, float]]) -> str:
    return " ".join(f"{run['ms']:.0f} ({run['calls']})" for run in runs)


def _span(values: list[float]) -> str:
    return f"{statistics.median(values):.0f} ({min(values):.0f}-{max(values):.0f})"


if __name__ == "__main__":
    sys.exit(main())

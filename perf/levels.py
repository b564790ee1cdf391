"""Measures what the levels of DataFrame lineage cost: at capture, and at a trace.

    python -m perf.levels [--megabytes 100] [--rounds 5] [--out perf/results]

For each level, and for stock Spark, one session that stays, with Kafka, `lineage consume` and `lineage serve`
of its own beside them. For each workload:
1. Each session runs it once, unmeasured: the JVM compiles, the input is read into the page cache.
2. In each round each session runs it once, measured; every round begins with another one.
3. In each round the sessions that can be asked trace one row of what they wrote last, a row of middling
   frequency, the same in all, by `spark_agent.trace`. The answers must be equal.
Writes levels-DATE.json and .md.
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
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil

from perf.capture import processes
from perf.capture.__main__ import about_machine
from perf.capture.broker import Broker
from perf.capture.cases import CASES, WORKLOADS, Case
from perf.capture.drivers import ROOT, JobError
from perf.ingest.members import Service
from perf.ingest.topics import Topics
from perf.tables import publish, table
from spark_agent.delivery.settings import EAGER, LEVELS

SEED = 20_261_122
STOCK = "stock"
SESSIONS = (STOCK, *LEVELS)
WORKLOADS_OF = ("dataframe-wordcount", "dataframe-join")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m perf.levels", description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=100.0, help="size of the input (default: 100)")
    parser.add_argument("--rounds", type=int, default=5, help="measured rounds (default: 5)")
    parser.add_argument("--cores", type=int, default=2, help="local[N] (default: 2)")
    parser.add_argument("--memory", default="2g", help="of each driver (default: 2g)")
    parser.add_argument("--note", default="", help="a sentence for the result")
    parser.add_argument("--folder", type=Path, default=Path(".cache/perf"), help="of inputs and of the run")
    parser.add_argument("--jars", type=Path, default=Path(".cache/lineage/jars"), help="of Kafka's jars")
    parser.add_argument("--out", type=Path, default=Path("perf/results"), help="folder of the results")
    parser.add_argument("--session", help=argparse.SUPPRESS)  # the process that is measured: its conf
    options = parser.parse_args(argv)
    if options.session:
        return serve(json.loads(options.session))
    folder = options.folder.absolute() / "run-levels"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with ExitStack() as cleanup:
        figures = measured(folder, options, cleanup)
    shutil.rmtree(folder)
    publish(options.out, "levels", figures, page(figures))
    return 0


# -- the process that is measured --------------------------------------------------------------------


def serve(conf: dict[str, str]) -> int:
    """Run and trace what standard input says, one JSON a line, in one session. Answers go to descriptor 3."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for name, value in conf.items():
        builder = builder.config(name, value)
    builder.getOrCreate().sparkContext.setLogLevel("ERROR")
    SparkSession.stop = lambda self: None  # the jobs stop their session; this one stays
    with os.fdopen(3, "w") as answers:
        for line in sys.stdin:
            began = time.perf_counter()
            answer = _done(json.loads(line))
            answers.write(json.dumps({"wall_s": time.perf_counter() - began, **answer}) + "\n")
            answers.flush()
    return 0


def _done(asked: dict[str, Any]) -> dict[str, Any]:
    if "job" in asked:
        sys.argv = [asked["job"], *asked["arguments"]]
        runpy.run_path(asked["job"], run_name="__main__")
        return {}
    from spark_agent import trace

    rows = trace(asked["path"], api=asked["api"]).backward(row=asked["row"])
    return {"sources": sorted((Path(row.path).name, row.row) for row in rows.collect())}


class Session:
    """One such process; `ask` gives its answer with the CPU seconds that it took."""

    def __init__(self, conf: dict[str, str], log: Path) -> None:
        read, write = os.pipe()
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", f'exec "$0" "$@" 3>&{write}', sys.executable, "-m", "perf.levels",
                 "--session", json.dumps(conf)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
                pass_fds=(write,),
                text=True,
            )  # fmt: skip
        os.close(write)
        self._answers = os.fdopen(read)

    def ask(self, **asked: Any) -> dict[str, Any]:
        """Raises JobError."""
        assert self._process.stdin is not None
        before = self._cpu_s()
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        line = self._answers.readline()
        if not line:
            raise JobError(f"a session has ended; see {self._log}")
        return {**json.loads(line), "cpu_s": round(self._cpu_s() - before, 2)}

    def _cpu_s(self) -> float:
        try:
            return processes.seconds(processes.tree(self._process.pid))
        except psutil.NoSuchProcess:
            raise JobError(f"a session has ended; see {self._log}") from None

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._answers.close()


# -- the rounds ---------------------------------------------------------------------------------------


def measured(folder: Path, options: argparse.Namespace, cleanup: ExitStack) -> dict[str, Any]:
    about = about_machine("perf.levels", options.note)
    broker = Broker(folder / "stack", options.jars)
    cleanup.callback(broker.stop)
    topics = Topics(broker.bootstrap_servers, "levels")
    topics.create()
    service = Service(topics, folder / "service")
    cleanup.callback(service.consume(0).stop)
    api = service.serve()
    cleanup.callback(api.process.stop)
    sessions = {}
    for name in SESSIONS:
        sessions[name] = Session(_conf(name, topics, options), folder / f"{name}.log")
        cleanup.callback(sessions[name].stop)
    workloads = {}
    for name in WORKLOADS_OF:
        case = CASES[name]
        inputs = [
            source.file(options.folder.absolute() / "data", options.megabytes, SEED) for source in case.inputs
        ]
        workloads[name] = _rounds(case, inputs, sessions, api.url, folder, options.rounds)
    import pyspark

    return {
        **about,
        "Spark": f"{pyspark.__version__}, local[{options.cores}], driver memory {options.memory}",
        "load at the end": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "seed": SEED,
        "megabytes": options.megabytes,
        "rounds": options.rounds,
        "workloads": workloads,
    }


def _conf(name: str, topics: Topics, options: argparse.Namespace) -> dict[str, str]:
    return {
        "spark.master": f"local[{options.cores}]",
        "spark.app.name": f"levels: {name}",
        "spark.driver.memory": options.memory,
        "spark.ui.enabled": "false",
        "spark.lineage.enabled": str(name != STOCK).lower(),
        "spark.lineage.dataframes.level": name if name in LEVELS else EAGER,
        "spark.lineage.kafka.bootstrap.servers": topics.bootstrap_servers,
        "spark.lineage.topic.node": topics.node,
        "spark.lineage.topic.flow": topics.flow,
        "spark.lineage.delivery.timeout": "60",
    }


def _rounds(
    case: Case, inputs: list[Path], sessions: dict[str, Session], api: str, folder: Path, rounds: int
) -> dict[str, Any]:
    def run(name: str, number: int) -> dict[str, Any]:
        output = folder / f"{case.name}-{name}-{number}"
        cost = sessions[name].ask(job=str(WORKLOADS / case.job), arguments=case.arguments(inputs, output))
        print(f"{time.strftime('%H:%M:%S')} {case.name}, round {number}, {name}: {cost}", file=sys.stderr)
        return cost

    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in sessions}
    traces: dict[str, list[dict[str, Any]]] = {name: [] for name in sessions if name != STOCK}
    are_equal = True
    for number in range(rounds + 1):
        turn = number % len(sessions)
        for name in (*SESSIONS[turn:], *SESSIONS[:turn]):
            cost = run(name, number)
            if number:
                runs[name].append(cost)
        answers = []
        for name in traces:
            path, row = _middling(folder / f"{case.name}-{name}-{number}")
            trace = sessions[name].ask(path=str(path), row=row, api=api)
            answers.append(trace.pop("sources"))
            print(f"  trace of {path.name}:{row + 1}, {name}: {trace}", file=sys.stderr)
            if number:
                traces[name].append(trace)
        are_equal &= all(answer == answers[0] for answer in answers) and bool(answers[0])
        for name in sessions:
            shutil.rmtree(folder / f"{case.name}-{name}-{number - 1}", ignore_errors=True)
    return {
        "title": case.title,
        "runs": runs,
        "traces": traces,
        "sources": len(answers[0]),
        "are_equal": are_equal,
    }


def _middling(output: Path) -> tuple[Path, int]:
    """(file, row) of the row whose last column, a number, is in the middle; the same in equal outputs."""
    rows = [
        (float(text.rpartition(",")[2]), text, part, at)
        for part in sorted(output.glob("part-*"))
        for at, text in enumerate(part.read_text().splitlines())
    ]
    rows.sort(key=lambda row: row[:2])
    _, _, part, at = rows[len(rows) // 2]
    return part, at


# -- the result ---------------------------------------------------------------------------------------


def page(figures: dict[str, Any]) -> str:
    rows = []
    for workload in figures["workloads"].values():
        stock = workload["runs"][STOCK]
        for name in SESSIONS:
            runs, traces = workload["runs"][name], workload["traces"].get(name, [])
            rows.append(
                [
                    workload["title"],
                    name,
                    _span(runs, lambda run: run["cpu_s"]),
                    _ratio(runs, stock, "cpu_s"),
                    _ratio(runs, stock, "wall_s"),
                    _span(traces, lambda run: run["wall_s"]),
                    _span(traces, lambda run: run["cpu_s"]),
                    f"{workload['sources']:,}" if traces else "",
                ]
            )
    head = [
        "workload",
        "level",
        "CPU s",
        "CPU / stock",
        "wall / stock",
        "trace, s",
        "trace, CPU s",
        "rows found",
    ]
    equal = all(figures_of_workload["are_equal"] for figures_of_workload in figures["workloads"].values())
    about = "\n".join(f"- {name}: {value}" for name, value in figures.items() if name != "workloads")
    return "\n".join(
        [
            "# What the levels of DataFrame lineage cost",
            "",
            f"Input of {figures['megabytes']:g} MB, made by `python -m perf.levels`. Median of the rounds, "
            "and the range; ratios are made within a round. A trace is that of one row of middling frequency "
            "in the same session, from the call to the rows, what has to arrive before included.",
            f"The answers of all levels were {'equal' if equal else 'NOT EQUAL'}.",
            "",
            table(head, rows),
            "",
            about,
            "",
        ]
    )


def _span(of: list[dict[str, Any]], figure: Callable[[dict[str, Any]], float]) -> str:
    values = [figure(run) for run in of]
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})" if values else ""


def _ratio(runs: list[dict[str, Any]], stock: list[dict[str, Any]], name: str) -> str:
    pairs = [{"ratio": run[name] / base[name]} for run, base in zip(runs, stock, strict=True)]
    return _span(pairs, lambda pair: pair["ratio"])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except JobError as error:
        sys.exit(f"perf.levels: {error}")

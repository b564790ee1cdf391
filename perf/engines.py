"""Measures the two engines of a trace, DuckDB and NumPy here and Spark, on the same flow store.

    python -m perf.engines [--megabytes 100] [--questions 3] [--out perf/results]

On a Kafka of its own, a real WordCount's lineage goes into a flow store. Each engine answers in a process of
its own: which lines made a word of middling frequency, and the commonest one; what became of one line. The
answers must be equal. Writes engines-DATE.json and .md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lineage_service.lineage import Trace
from lineage_service.queries import TraceQuery
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from perf.capture.__main__ import about_machine
from perf.capture.broker import Broker
from perf.capture.cases import CASES
from perf.ingest.members import Service
from perf.ingest.topics import Job, Topics
from perf.tables import publish

SEED, TIMEOUT_S, LIMIT = 20_261_122, 900.0, 100
ENGINES = ("local", "spark")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m perf.engines", description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=100.0, help="size of the input (default: 100)")
    parser.add_argument("--questions", type=int, default=3, help="times that each is asked (default: 3)")
    parser.add_argument("--memory", default="4g", help="of Spark's driver (default: 4g)")
    parser.add_argument("--folder", type=Path, default=Path(".cache/perf"), help="of inputs and of the run")
    parser.add_argument("--jars", type=Path, default=Path(".cache/lineage/jars"), help="of Kafka's jars")
    parser.add_argument("--out", type=Path, default=Path("perf/results"), help="folder of the results")
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)  # the process that is measured
    parser.add_argument("--asked", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.engine:
        print(json.dumps(_answered(options.engine, options.memory, json.loads(options.asked))))
        return 0
    folder = options.folder.absolute() / "run-engines"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    figures = _measured(folder, options)
    shutil.rmtree(folder)
    publish(options.out, "engines", figures, _page(figures))
    return 0


def _measured(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    broker = Broker(folder / "stack", options.jars)
    try:
        application_id, store, source, output = _captured(folder, broker, options)
    finally:
        broker.stop()
    asked = {
        "store": str(store),
        "application": application_id,
        "times": options.questions,
        "questions": _questions(source, output),
    }
    answers: dict[str, Any] = {}
    for engine in ENGINES:
        command = [sys.executable, "-m", "perf.engines", "--engine", engine, "--memory", options.memory]
        done = subprocess.run([*command, "--asked", json.dumps(asked)], stdout=subprocess.PIPE, check=True)
        answers[engine] = json.loads(done.stdout.splitlines()[-1])
    first, second = ([asked["answer"] for asked in answers[engine]["questions"]] for engine in ENGINES)
    store_bytes = sum(path.stat().st_size for path in store.rglob("*.parquet"))
    return {
        **about_machine("perf.engines", ""),
        "python": platform.python_version(),
        "load": f"{os.getloadavg()[0]:.1f} at the end",
        "megabytes": options.megabytes,
        "store_bytes": store_bytes,
        "are_equal": first == second,
        "engines": answers,
    }


def _captured(folder: Path, broker: Broker, options: argparse.Namespace) -> tuple[str, Path, Path, Path]:
    """(application, store, input, output) of a WordCount whose lineage is stored."""
    topics = Topics(broker.bootstrap_servers, "engines")
    topics.create()
    case = CASES["wordcount"]
    inputs = [
        source.file(options.folder.absolute() / "data", options.megabytes, SEED) for source in case.inputs
    ]
    job = Job(topics, case, inputs, is_detailed=False, cores=2, memory="2g", folder=folder)
    service = Service(topics, folder / "service")
    consumer = service.consume(0)
    try:
        job.wait()
        application_id = _complete(service.store)
    finally:
        job.stop()
        consumer.stop()
    return application_id, service.folder / "flows", inputs[0], job.output


def _complete(store: DeltaFlowStore) -> str:
    """The id of the one application, once all of it is stored."""
    questions, deadline = LineageQueries(store, time_budget_s=TIMEOUT_S), time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        for application in questions.applications():
            if application.complete:
                return application.application_id
        time.sleep(0.5)
    raise SystemExit(f"the application is not complete after {TIMEOUT_S:g} s")


def _questions(source: Path, output: Path) -> list[dict[str, Any]]:
    rows = [
        (int(row.rpartition(",")[2].strip(" )")), str(part), at)
        for part in sorted(output.glob("part-*"))
        for at, row in enumerate(part.read_text().splitlines())
    ]
    rows.sort()
    named = {"a word of middling frequency": rows[len(rows) // 2], "the commonest word": rows[-1]}
    backward = [
        {"name": f"backward from {name}", "direction": "backward", "path": path, "row": row}
        for name, (_, path, row) in named.items()
    ]
    forward = {"name": "forward from a line", "direction": "forward", "path": str(source), "row": 1_000}
    return [*backward, forward]


def _answered(engine: str, memory: str, asked: dict[str, Any]) -> dict[str, Any]:
    """What one engine says to each question, how long it took, and what memory the process had in all."""
    store = DeltaFlowStore(asked["store"])
    kept = [0]
    if engine == "spark":
        from lineage_service.tracing.spark.api import SparkTracing, local_session

        conf = [f"spark.driver.memory={memory}", "spark.sql.shuffle.partitions=8"]
        with local_session("local[2]", conf) as spark:
            tracing = SparkTracing(spark, store)

            def ask(application_id: str, query: TraceQuery) -> Trace:
                answer = tracing.trace(application_id, query)
                infos = spark.sparkContext._jsc.sc().getRDDStorageInfo()
                kept.append(sum(info.memSize() + info.diskSize() for info in infos))
                return answer

            answers = _asked(ask, asked)
            jvm = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
            peak = _peak_mib(jvm)
    else:
        answers = _asked(LineageQueries(store, time_budget_s=TIMEOUT_S).trace, asked)
        peak = 0.0
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"questions": answers, "peak_mib": round(own + peak), "kept_mib": round(max(kept) / 2**20)}


def _asked(trace: Callable[[str, TraceQuery], Trace], asked: dict[str, Any]) -> list[dict[str, Any]]:
    answers = []
    for question in asked["questions"]:
        query = TraceQuery(
            direction=question["direction"], path=question["path"], row=question["row"], limit=LIMIT
        )
        seconds, answer = [], None
        for _ in range(asked["times"]):
            began = time.perf_counter()
            answer = trace(asked["application"], query)
            seconds.append(round(time.perf_counter() - began, 2))
        assert answer is not None
        totals = {node.node_id: node.total for node in answer.nodes}
        answers.append(
            {
                "name": question["name"],
                "seconds": seconds,
                "records": sum(totals.values()),
                "answer": [totals, len(answer.flows), answer.exact, answer.complete],
            }
        )
    return answers


def _peak_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def _page(figures: dict[str, Any]) -> str:
    local, spark = (figures["engines"][engine] for engine in ENGINES)
    rows = [
        f"| {of_local['name']} | {of_local['records']:,} | {of_local['seconds'][0]:.2f} | "
        f"{statistics.median(of_local['seconds']):.2f} | {of_spark['seconds'][0]:.2f} | "
        f"{statistics.median(of_spark['seconds']):.2f} |"
        for of_local, of_spark in zip(local["questions"], spark["questions"], strict=True)
    ]
    about = "\n".join(
        f"- {name}: {figures[name]}"
        for name in figures
        if name not in ("engines", "are_equal", "store_bytes")
    )
    equal = "The answers were equal." if figures["are_equal"] else "THE ANSWERS WERE NOT EQUAL."
    return "\n".join(
        [
            "# A trace on one machine and on Spark",
            "",
            f"WordCount of {figures['megabytes']:g} MB, flow store of {figures['store_bytes'] / 1e6:.1f} MB, "
            "made by `python -m perf.engines`; both engines on the same machine and files. "
            f"{equal} Seconds: the first time, and the median.",
            "",
            "| question | records reached | local, first | local | Spark, first | Spark |",
            "|---|---|---|---|---|---|",
            *rows,
            "",
            f"Peak memory: local {local['peak_mib']:,} MiB; Spark {spark['peak_mib']:,} MiB, Python and JVM "
            "together. "
            f"Sets that Spark kept for one trace or more: {spark['kept_mib']:,} MiB at most.",
            "",
            about,
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())

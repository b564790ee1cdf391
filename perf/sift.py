"""Measures `lineage sift`: how long it takes to find a planted fault, as a share of the job's own time.

    python -m perf.sift [--megabytes 100] [--programs sift_airport,nested] [--sql] [--out perf/results]

Each program is one of RDDs, or with `--sql` one of DataFrames. It runs once as its user runs it, and once
with lineage. When its lineage is stored, it is sifted by the same command. The answer must have planted
lines. Kafka and `lineage consume` of its own run beside it. Writes sift-DATE.json and .md, or sift-sql-DATE.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from perf.capture.__main__ import about_machine
from perf.capture.broker import Broker
from perf.capture.cases import Input
from perf.capture.drivers import ROOT, JobError
from perf.ingest.members import Service
from perf.ingest.topics import Topics
from perf.tables import publish, table
from perf.workloads import planted_inputs

SEED = 20_261_126
TARGET = 0.62
_STORED_S = 3_600.0


class Program(NamedTuple):
    """Its inputs, what is wrong, and which lines are planted."""

    inputs: tuple[Input, ...]
    test: tuple[str, ...]
    is_wrong: Callable[[str], bool]
    form: str = "rdd"
    sql: str = "sql"


PROGRAMS: Mapping[str, Program] = {
    "sift_airport": Program(
        (Input(kind="layovers"),),
        ("--fails", "int(line.split(',')[2]) < 0"),
        planted_inputs.is_wrong_layover,
    ),
    "sift_weather": Program(
        (Input(kind="snowfalls"),),
        ("--fails", "float(line.split(',')[2]) > 1000"),
        planted_inputs.is_wrong_snowfall,
    ),
    "sift_student": Program(
        (Input(kind="students"),),
        ("--fails", "float(line.split(',')[2]) > 20"),
        planted_inputs.is_wrong_student,
    ),
    "nested": Program(
        (Input(kind="readings"),),
        ("--fails", "int(line.split(',')[1]) > 10000"),
        planted_inputs.is_wrong_reading,
    ),
    "holistic": Program(
        (Input(kind="readings"),),
        ("--fails", "int(line.split(',')[1]) > 1000"),
        planted_inputs.is_wrong_reading,
    ),
    "unique_words": Program(
        (Input(kind="documents"),),
        ("--fails", "line.startswith('only30,')"),
        lambda line: line.endswith("\tonly30"),
    ),
    "subtract": Program(
        (Input(kind="purchases"), Input(kind="customers", is_sized=False)),
        ("--fails", "line.startswith('c')"),
        lambda line: line.startswith("c"),
    ),
    "crashing": Program(
        (Input(kind="broken"),), ("--crash",), planted_inputs.is_wrong_value, "map", "sql-cast"
    ),
}


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    names = options.programs.split(",") if options.programs else list(PROGRAMS)
    folder = options.folder.absolute() / "run-sift"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for package in ("spark_agent", "lineage_service"):  # as pip does: no process of a sandbox compiles
        compileall.compile_dir(ROOT / package, quiet=2)
    about = about_machine("perf.sift", options.note)
    sifts = []
    for name in names:
        with ExitStack() as cleanup:
            sifts.append(measured(name, folder / name, options, cleanup))
            print(sifts[-1], file=sys.stderr, flush=True)
    shutil.rmtree(folder)
    figures = {**about, "megabytes": options.megabytes, "sifts": sifts}
    publish(options.out, "sift-sql" if options.sql else "sift", figures, page(figures))
    return 0


def measured(name: str, folder: Path, options: argparse.Namespace, cleanup: ExitStack) -> dict[str, Any]:
    """One program. Raises JobError."""
    program = PROGRAMS[name]
    folder.mkdir()
    inputs = [
        source.file(options.folder.absolute() / "data", options.megabytes, SEED) for source in program.inputs
    ]
    broker = Broker(folder / "stack", options.jars)
    cleanup.callback(broker.stop)
    topics = Topics(broker.bootstrap_servers, "sift")
    topics.create()
    service = Service(topics, folder / "service")
    cleanup.callback(service.consume(0).stop)
    job = [sys.executable, str(ROOT / f"perf/workloads/{name}.py"), *map(str, inputs)]
    environment = _environment(topics, options.cores)
    plain = {**environment, "PYSPARK_SUBMIT_ARGS": _arguments({}, options.cores)}
    form = program.sql if options.sql else program.form
    run_s = seconds([*job, str(folder / "plain"), form], plain)
    command = [*job, str(folder / "out"), form]
    lineage_s = seconds(command, environment)
    application_id = _stored(service)
    flags = ["--home", str(service.folder), "--store", str(service.folder / "flows"), "--json"]
    sift = [sys.executable, "-m", "lineage_service.cli.main", "sift", application_id, *program.test, *flags]
    began = time.perf_counter()
    ended = subprocess.run(
        [*sift, "--", *command], env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    sift_s = time.perf_counter() - began
    if ended.returncode:
        raise JobError(f"the sift of {name} ended with exit code {ended.returncode}")
    answer = json.loads(ended.stdout)
    culprits = sum(program.is_wrong(row["text"]) for row in answer["rows"])
    if not culprits or not answer["minimal"]:
        raise JobError(f"the sift of {name} has not the planted lines: {answer}")
    return {
        "program": name,
        "form": form,
        "run_s": round(run_s, 2),
        "lineage_s": round(lineage_s, 2),
        "sift_s": round(sift_s, 2),
        "share": round(sift_s / run_s, 3),
        **{field: answer[field] for field in ("tests", "total", "of", "necessary")},
        "culprits": culprits,
    }


def seconds(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Of a job, which may fail."""
    began = time.perf_counter()
    subprocess.run(
        command, env=dict(environment), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    )
    return time.perf_counter() - began


def _environment(topics: Topics, cores: int) -> dict[str, str]:
    conf = {
        "spark.lineage.enabled": "true",
        "spark.lineage.kafka.bootstrap.servers": topics.bootstrap_servers,
        "spark.lineage.topic.node": topics.node,
        "spark.lineage.topic.flow": topics.flow,
        "spark.lineage.delivery.timeout": "60",
    }
    return {
        **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": _arguments(conf, cores),
    }


def _arguments(conf: Mapping[str, str], cores: int) -> str:
    own = {"spark.master": f"local[{cores}]", "spark.driver.memory": "2g", "spark.ui.enabled": "false"}
    return " ".join([*(f"--conf {name}={value}" for name, value in {**own, **conf}.items()), "pyspark-shell"])


def _stored(service: Service) -> str:
    """The id of the application, once all of its lineage is stored. Raises JobError."""
    from lineage_service.tracing.query.service import LineageQueries

    until = time.monotonic() + _STORED_S
    while time.monotonic() < until:
        applications = service.store.applications() if (service.folder / "flows").exists() else []
        queries = LineageQueries(service.store, time_budget_s=60)
        complete = [name for name in applications if queries.application(name).complete]
        if complete:
            return complete[0]
        time.sleep(0.5)
    raise JobError("the lineage of the job is not complete")


def page(figures: Mapping[str, Any]) -> str:
    about = [[key, str(value)] for key, value in figures.items() if isinstance(value, str | int | float)]
    rows = [
        [
            *(
                sift["program"],
                sift["form"],
                f"{sift['run_s']:.1f}",
                f"{sift['lineage_s']:.1f}",
                f"{sift['sift_s']:.1f}",
            ),
            *(f"{sift['share']:.0%}", str(sift["tests"]), f"{sift['culprits']} of {sift['total']}"),
            f"{sift['of']:,}",
        ]
        for sift in figures["sifts"]
    ]
    headings = ["program", "form", "the run, s", "with lineage, s", "sift, s", "share of the run", "tests"]
    return f"""# The smallest input that still fails

{table(["", ""], about)}

Inputs of {figures["megabytes"]:g} MB. All times are of the whole command, with the start of Spark.
Target: at most {TARGET:.0%} of the run.

{table([*headings, "planted lines in the answer", "sought among"], rows)}
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m perf.sift", description="What a sift takes.")
    parser.add_argument("--megabytes", type=float, default=100.0, help="size of the inputs (default: 100)")
    parser.add_argument("--programs", default="", help="names, separated by commas (default: all)")
    parser.add_argument("--sql", action="store_true", help="the same programs in SQL")
    parser.add_argument("--cores", type=int, default=2, help="local[N] (default: 2)")
    parser.add_argument("--note", default="", help="a sentence for the result")
    parser.add_argument("--out", type=Path, default=ROOT / "perf" / "results", help="for the result files")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / ".cache" / "perf", help="of inputs and of the run"
    )
    parser.add_argument(
        "--jars", type=Path, default=ROOT / ".cache" / "lineage" / "jars", help="Kafka's jars"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

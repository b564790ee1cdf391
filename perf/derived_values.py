"""Measures what derived values save (`spark_agent/worker/derived_values.py`), each half of them by itself.

    python -m perf.derived_values [--megabytes 100] [--rounds 5] [--out perf/results]

Three jobs that the code was not written for run with `spark.lineage.detailed=true`, by turns from three
trees: the project as it is, one in which no JSON document stands for its value, and one without any derived
value. Each tree has a warm driver of its own, and all of them send to one Kafka. Counted are the CPU seconds
of the driver, its JVM and its Python workers, and the bytes that Kafka stored. Writes
derived-values-DATE.json and .md.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from perf.capture.__main__ import about_machine
from perf.capture.broker import Broker
from perf.capture.cases import DETAILED, WORKLOADS, Input
from perf.capture.drivers import ROOT, Driver, digest
from perf.capture.report import Spread
from perf.tables import publish, table

SEED = 20_261_126
#: Job -> its input.
JOBS: Mapping[str, Input] = {
    "bigrams": Input(kind="words"),
    "hashtags": Input(kind="tweets"),
    "means": Input(kind="purchases"),
}
WITH, NO_DOCUMENTS, WITHOUT = "with", "no documents", "without"
#: Tree -> what is added to its `derived_values.py`.
TREES: Mapping[str, str] = {
    WITH: "",
    NO_DOCUMENTS: "\n\ndef parses_json(function):\n    return False\n",
    WITHOUT: "\n\ndef prepare(plan, functions, texts_of):\n    return nothing()\n",
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    folder = options.folder.absolute()
    run_folder = folder / "run"
    shutil.rmtree(run_folder, ignore_errors=True)
    run_folder.mkdir(parents=True)
    runs: list[dict[str, Any]] = []
    about = about_machine("perf.derived_values", options.note)
    with ExitStack() as cleanup:
        broker = Broker(run_folder / "stack", options.jars)
        cleanup.callback(broker.stop)
        drivers = {}
        for name in TREES:
            logs = run_folder / f"logs of {name}"
            logs.mkdir()
            drivers[name] = Driver(
                DETAILED,
                cores=2,
                memory="2g",
                bootstrap_servers=broker.bootstrap_servers,
                folder=logs,
                root=tree(name, run_folder),
            )
            cleanup.callback(drivers[name].close)
        names = list(TREES)
        for job, source in JOBS.items():
            file = source.file(folder / "data", options.megabytes, SEED)
            for number in range(options.rounds + 1):  # the first one is not counted
                turn = number % len(names)
                for name in names[turn:] + names[:turn]:
                    run = _run(drivers[name], broker, job, file, run_folder / "output")
                    print(time.strftime("%H:%M:%S"), job, number, name, run, file=sys.stderr, flush=True)
                    if number:
                        runs.append({"job": job, "round": number, "tree": name, **run})
    figures = {**about, "rounds": options.rounds, "megabytes": options.megabytes, "runs": runs}
    publish(options.out, "derived-values", figures, page(figures))
    return 0


def tree(name: str, folder: Path) -> Path:
    """A copy of what a job needs of the project, changed as `TREES` says."""
    root = folder / f"tree {name}"
    for package in ("spark_agent", "perf"):
        shutil.copytree(
            ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__", "results")
        )
    with (root / "spark_agent/worker/derived_values.py").open("a") as module:
        module.write(TREES[name])
    return root


def _run(driver: Driver, broker: Broker, job: str, file: Path, output: Path) -> dict[str, Any]:
    shutil.rmtree(output, ignore_errors=True)
    ends, stored = broker.ends(), broker.stored_bytes()
    cost = driver.run(str(WORKLOADS / f"{job}.py"), [str(file), str(output)])
    sent = broker.sent_since(ends)
    return {
        "cpu_s": round(cost.cpu_s, 2),
        "wall_s": round(cost.wall_s, 2),
        "sent_bytes": broker.stored_bytes() - stored,
        "dropped": sent.dropped,
        "output": digest(output)[1],
    }


def page(figures: Mapping[str, Any]) -> str:
    about = [[key, str(value)] for key, value in figures.items() if isinstance(value, str | int | float)]
    rows = []
    for job in JOBS:
        runs = [run for run in figures["runs"] if run["job"] == job]
        seconds = {(run["tree"], run["round"]): run["cpu_s"] for run in runs}
        rounds = sorted({run["round"] for run in runs})
        sent = {name: Spread.of([run["sent_bytes"] for run in runs if run["tree"] == name]) for name in TREES}
        rows.append(
            [
                job,
                *(str(Spread.of([seconds[name, number] for number in rounds])) for name in TREES),
                _ratio(seconds, rounds, WITH, NO_DOCUMENTS),
                _ratio(seconds, rounds, NO_DOCUMENTS, WITHOUT),
                " / ".join(f"{sent[name].median / 1e6:.1f}" for name in TREES),
            ]
        )
    unequal = [
        job for job in JOBS if len({run["output"] for run in figures["runs"] if run["job"] == job}) > 1
    ]
    dropped = sum(run["dropped"] for run in figures["runs"])
    head = ["job", *(f"CPU s, {name}" for name in TREES), "documents", "pairs", "MB sent"]
    return f"""# What derived values save

{table(["", ""], about)}

Medians with their ranges. `documents` is the ratio of CPU seconds with and without the half that lets a JSON
document stand for its value, the pairs derived in both. `pairs` is that of the other half. MB sent are those
of the three trees.

{table(head, rows)}

Outputs differ: {", ".join(unequal) or "none"}. Blocks lost: {dropped}.
"""


def _ratio(seconds: Mapping[tuple[str, int], float], rounds: Sequence[int], over: str, under: str) -> str:
    return str(Spread.of([seconds[over, number] / seconds[under, number] for number in rounds]))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m perf.derived_values", description="What derived values save."
    )
    parser.add_argument("--megabytes", type=float, default=100, help="size of each input")
    parser.add_argument("--rounds", type=int, default=5, help="measured rounds of all trees")
    parser.add_argument("--note", default="", help="a sentence for the result")
    parser.add_argument("--out", type=Path, default=ROOT / "perf" / "results", help="for the result files")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / ".cache" / "perf", help="for inputs and outputs"
    )
    parser.add_argument(
        "--jars", type=Path, default=ROOT / ".cache" / "lineage" / "jars", help="Kafka's jars"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

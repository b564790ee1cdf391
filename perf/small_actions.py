"""Measures what lineage adds to small actions, and to tasks that do next to nothing.

    python -m perf.small_actions [--rounds 5] [--actions 60] [--tasks 1600] [--out perf/results]

A warm driver with lineage and one without run the same jobs by turns. Of small actions it is the wait of the
user that counts, in milliseconds after the first action of a session; of tiny tasks the CPU seconds of the
driver, its JVM and its Python workers. Writes small-actions-DATE.json and .md.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from perf.capture.__main__ import about_machine
from perf.capture.broker import Broker
from perf.capture.cases import LINEAGE, STOCK, WORKLOADS
from perf.capture.drivers import ROOT, Driver
from perf.capture.report import Spread
from perf.tables import publish, table

MODES = (STOCK, LINEAGE)
#: Kind -> what it is.
KINDS = {"rdd": "count of an RDD", "dataframe": "collect of a DataFrame", "write": "write of a DataFrame"}
TARGET_MS, TARGET_CPU = 20.0, 1.10


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    folder = options.folder.absolute() / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    about = about_machine("perf.small_actions", options.note)
    runs: list[dict[str, Any]] = []
    with ExitStack() as cleanup:
        broker = Broker(folder / "stack", options.jars)
        cleanup.callback(broker.stop)
        drivers = {}
        for mode in MODES:
            drivers[mode] = Driver(
                mode, cores=2, memory="2g", bootstrap_servers=broker.bootstrap_servers, folder=folder
            )
            cleanup.callback(drivers[mode].close)
        for number in range(options.rounds + 1):  # the first one is not counted
            for mode in MODES[number % 2 :] + MODES[: number % 2]:
                run = _round(drivers[mode], options, folder)
                print(time.strftime("%H:%M:%S"), number, mode, run, file=sys.stderr, flush=True)
                if number:
                    runs.append({"round": number, "mode": mode, **run})
    figures = {
        **about,
        "rounds": options.rounds,
        "actions": options.actions,
        "tasks": options.tasks,
        "runs": runs,
    }
    publish(options.out, "small-actions", figures, page(figures))
    return 0


def _round(driver: Driver, options: argparse.Namespace, folder: Path) -> dict[str, float]:
    figures = {}
    for kind in KINDS:
        timings = folder / "timings.json"
        driver.run(str(WORKLOADS / "small_actions.py"), [kind, str(options.actions), str(timings)])
        figures[f"{kind}_ms"] = round(statistics.median(json.loads(timings.read_text())[1:]), 2)
    output = folder / "output"
    shutil.rmtree(output, ignore_errors=True)
    cost = driver.run(str(WORKLOADS / "tiny_tasks.py"), [str(options.tasks), str(output)])
    return {**figures, "tasks_cpu_s": round(cost.cpu_s, 2)}


def page(figures: Mapping[str, Any]) -> str:
    about = [[key, str(value)] for key, value in figures.items() if isinstance(value, str | int | float)]
    by_mode = {mode: [run for run in figures["runs"] if run["mode"] == mode] for mode in MODES}
    pairs = list(zip(by_mode[LINEAGE], by_mode[STOCK], strict=True))
    rows = []
    for kind, title in KINDS.items():
        name = f"{kind}_ms"
        added = Spread.of([lineage[name] - stock[name] for lineage, stock in pairs])
        rows.append([f"{title}, ms", *_both(by_mode, name), f"{added}", f"at most {TARGET_MS:.0f} more"])
    ratio = Spread.of([lineage["tasks_cpu_s"] / stock["tasks_cpu_s"] for lineage, stock in pairs])
    rows.append(
        ["tiny tasks, CPU s", *_both(by_mode, "tasks_cpu_s"), str(ratio), f"at most {TARGET_CPU:.2f}"]
    )
    return f"""# What lineage adds to small actions

{table(["", ""], about)}

Medians of the rounds with their ranges. Of an action the median of its session is taken, without the first.

{table(["", *MODES, "added, or ratio", "target"], rows)}
"""


def _both(by_mode: Mapping[str, Sequence[Mapping[str, Any]]], name: str) -> list[str]:
    return [str(Spread.of([run[name] for run in by_mode[mode]])) for mode in MODES]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m perf.small_actions", description="What small actions cost."
    )
    parser.add_argument("--rounds", type=int, default=5, help="measured rounds of both modes")
    parser.add_argument("--actions", type=int, default=60, help="actions of a session")
    parser.add_argument("--tasks", type=int, default=1600, help="tasks of the action of tiny tasks")
    parser.add_argument("--note", default="", help="a sentence for the result")
    parser.add_argument("--out", type=Path, default=ROOT / "perf" / "results", help="for the result files")
    parser.add_argument("--folder", type=Path, default=ROOT / ".cache" / "perf", help="for what a run leaves")
    parser.add_argument(
        "--jars", type=Path, default=ROOT / ".cache" / "lineage" / "jars", help="Kafka's jars"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

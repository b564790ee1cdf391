"""Measures what the papers on debugging by lineage (Newt, Titian) measured, and writes the result.

    python -m perf.debug [--megabytes 100] [--pairs 5] [--parts capture stored traces] [--quick]

| part | |
|---|---|
| capture | PigMix as RDDs and in SQL, with lineage and without, in turn: `perf.capture` on its queries |
| stored | each query consumed into a flow store: its bytes against those of the input |
| traces | backward from rows of each store, over HTTP: time against how many input rows there are |

Writes debug-DATE.json and .md. Shares are those of runs on this machine; no figure of another machine is
divided by one of this.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import pyspark

from perf.capture.__main__ import Bench, about_machine
from perf.capture.broker import Broker
from perf.capture.cases import CASES, LINEAGE, NOLIN, PIGMIX, STOCK
from perf.capture.drivers import ROOT, Driver, JobError
from perf.capture.report import Run
from perf.debug import report
from perf.debug.cases import RDD, SQL, TRACED
from perf.debug.traces import Traced, stored_bytes, trace_times
from perf.tables import publish
from perf.trace.stores import Store, build_store

PARTS = ("capture", "stored", "traces")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if options.quick:
        options.megabytes, options.pairs, options.rows = min(options.megabytes, 2.0), 1, 3
        options.warm_ups = 1
    folder = options.folder.absolute()
    about = about_machine("perf.debug", options.note) | {
        "Spark": f"{pyspark.__version__}, local[{options.cores}], driver memory {options.memory}",
        "Python": platform.python_version(),
        "input": f"{options.megabytes:g} MB, seed {options.seed}",
    }
    runs: list[Run] = []
    left_out: list[str] = []
    if "capture" in options.parts:
        runs, left_out = captured(folder, options)
    stores: list[Store] = []
    if {"stored", "traces"} & set(options.parts):
        stores = [stored(folder, name, options) for name in options.traced]
    sizes = [stored_bytes(store) for store in stores if "stored" in options.parts]
    traces: list[Traced] = []
    for store in stores if "traces" in options.parts else ():
        traces += trace_times(store, folder / "run-debug", options.rows, options.seed)
    figures = {
        "about": about,
        "left_out": left_out,
        "runs": [asdict(run) for run in runs],
        "stored": [asdict(size) for size in sizes],
        "traces": [asdict(trace) for trace in traces],
    }
    publish(options.out, "debug", figures, report.page(about, runs, left_out, sizes, traces))
    return 0


def captured(folder: Path, options: argparse.Namespace) -> tuple[list[Run], list[str]]:
    """(runs of all queries, what was left out and why), on a Kafka of its own."""
    run = folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir(parents=True)
    runs: list[Run] = []
    left_out: list[str] = []
    with ExitStack() as cleanup:
        broker = Broker(run / "stack", options.jars)
        cleanup.callback(broker.stop)
        drivers = {}
        for mode in (STOCK, LINEAGE, NOLIN):
            drivers[mode] = Driver(
                mode,
                cores=options.cores,
                memory=options.memory,
                bootstrap_servers=broker.bootstrap_servers,
                folder=run,
            )
            cleanup.callback(drivers[mode].close)
        of_plans = {mode: drivers[mode] for mode in (STOCK, LINEAGE)}
        for prefix, modes, warm_ups in ((RDD, drivers, 1), (SQL, of_plans, options.warm_ups)):
            bench = Bench(folder, options.seed, modes, broker)
            for query in options.queries:
                case = CASES[f"{prefix}{query}"]
                measured, missing = bench.measure(case, options.megabytes, options.pairs, warm_ups)
                runs += measured
                left_out += missing
    return runs, left_out


def stored(folder: Path, name: str, options: argparse.Namespace) -> Store:
    return build_store(
        folder / "stores",
        name,
        options.megabytes,
        seed=options.seed,
        data=folder / "data",
        jars=options.jars,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m perf.debug",
        description="Measures what the papers on debugging by lineage measured.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: a try, not a measurement")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    parser.add_argument("--megabytes", type=float, default=100.0, help="size of the largest input")
    parser.add_argument("--pairs", type=int, default=5, help="measured rounds of all modes")
    parser.add_argument(
        "--queries", nargs="+", choices=PIGMIX, default=list(PIGMIX), metavar="QUERY", help="of PigMix"
    )
    parser.add_argument("--warm-ups", type=int, default=3, help="unmeasured runs of each query in SQL")
    parser.add_argument("--rows", type=int, default=20, help="traced rows of each magnitude of a store")
    parser.add_argument(
        "--traced", nargs="+", choices=CASES, default=list(TRACED), metavar="NAME", help="stores to trace in"
    )
    parser.add_argument("--seed", type=int, default=1, help="of inputs and rows")
    parser.add_argument("--cores", type=int, default=2, help="local[N]")
    parser.add_argument("--memory", default="2g", help="spark.driver.memory")
    parser.add_argument("--note", default="", help="a sentence for the result, such as what else was running")
    for name, place, help_ in (
        ("out", ROOT / "perf" / "results", "for the result files"),
        ("folder", ROOT / ".cache" / "perf", "for inputs and stores, which are kept"),
        ("jars", ROOT / ".cache" / "lineage" / "jars", "where Kafka's jars are or go"),
    ):
        parser.add_argument(f"--{name}", type=Path, default=place, metavar="FOLDER", help=help_)
    return parser


if __name__ == "__main__":
    try:
        sys.exit(main())
    except JobError as error:
        sys.exit(f"perf.debug: {error}")

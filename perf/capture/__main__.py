"""Measures what capture costs and writes the result as JSON and as Markdown.

    python -m perf.capture --workloads wordcount grep tweets --sizes 100 500 --pairs 5

For each workload and size, in this order:
1. Each mode runs the job once or more, unmeasured: the JVM compiles, the input is read into the page cache.
2. In each of N rounds each mode runs it once, measured; every round begins with another mode.
3. After each run its output is compared with the others', and Kafka is asked what came.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil

from perf.capture import processes, report
from perf.capture.broker import Broker
from perf.capture.cases import CASES, DETAILED, LINEAGE, MODES, PACED, PARTS, UNEXPLAINED, WORKLOADS, Case
from perf.capture.drivers import ROOT, Driver, JobError, UnmirroredError, digest
from perf.capture.report import Run
from scripts.table_jars import NoTableJarsError, delta_conf


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    # What was started is stopped also when this process is told to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    modes = [mode for mode in MODES if mode in options.modes]
    folder = options.folder.absolute()
    shutil.rmtree(folder / "run", ignore_errors=True)
    (folder / "run").mkdir(parents=True)
    about = _about(options)
    conf = delta_conf() if any(CASES[name].is_delta for name in options.workloads) else {}
    runs: list[Run] = []
    left_out: list[str] = []
    options.results.mkdir(parents=True, exist_ok=True)
    with ExitStack() as cleanup:
        broker = Broker(folder / "run" / "stack", options.jars)
        cleanup.callback(broker.stop)
        about["Kafka"] = broker.version
        drivers = {}
        for mode in modes:
            drivers[mode] = Driver(
                mode,
                cores=options.cores,
                memory=options.memory,
                bootstrap_servers=broker.bootstrap_servers,
                folder=folder / "run",
                conf=conf,
            )
            cleanup.callback(drivers[mode].close)
        bench = Bench(folder, options.seed, drivers, broker)
        for megabytes in options.sizes:
            for name in options.workloads:
                measured, missing = bench.measure(CASES[name], megabytes, options.pairs, options.warm_ups)
                runs += measured
                left_out += missing
                about["load at the end"] = _load()
                _write(options.results / options.name, report.as_json(runs, about, left_out))
    page = (options.results / options.name).with_suffix(".md")
    print(page.read_text())
    print(f"Written to {page} and its .json", file=sys.stderr)
    return 0


class Bench:
    """The measuring loop over warm drivers."""

    def __init__(self, folder: Path, seed: int, drivers: dict[str, Driver], broker: Broker) -> None:
        self._folder, self._seed = folder, seed
        self._drivers, self._broker = drivers, broker

    def measure(self, case: Case, megabytes: float, pairs: int, warm_ups: int) -> tuple[list[Run], list[str]]:
        """(runs of `pairs` rounds, what was left out and why)."""
        inputs = [source.file(self._folder / "data", megabytes, self._seed) for source in case.inputs]
        modes, missing = list(self._drivers), []
        for mode in list(modes):
            try:
                for _ in range(warm_ups):
                    self._run(case, megabytes, inputs, mode, 0, is_last=False)
            except UnmirroredError as error:
                modes.remove(mode)
                missing.append(f"{case.title}, {mode}: no mirror of {error}")
        runs = []
        for number in range(1, pairs + 1):
            turn = number % len(modes)
            for mode in modes[turn:] + modes[:turn]:
                runs.append(self._run(case, megabytes, inputs, mode, number, is_last=number == pairs))
        return runs, missing

    def _run(
        self, case: Case, megabytes: float, inputs: list[Path], mode: str, number: int, *, is_last: bool
    ) -> Run:
        output = self._folder / "run" / "output"
        shutil.rmtree(output, ignore_errors=True)
        broker, driver = self._broker, self._drivers[mode]
        ends, stored = broker.ends(), broker.stored_bytes()
        load = os.getloadavg()[0]
        kafka = processes.tree(broker.pid)
        kafka_before = processes.seconds(kafka)
        cost = driver.run(str(WORKLOADS / case.job), case.arguments(inputs, output))
        kafka_cpu_s = processes.seconds(kafka) - kafka_before
        rows, sha256 = digest(output)
        is_captured = mode in (LINEAGE, DETAILED)
        sent = broker.sent_since(ends) if is_captured else None
        run = Run(
            case=case.name,
            megabytes=megabytes,
            round=number,
            mode=mode,
            cpu_s=round(cost.cpu_s, 2),
            workers_s=round(cost.workers_s, 2),
            wall_s=round(cost.wall_s, 3),
            kafka_cpu_s=round(kafka_cpu_s, 2),
            load=round(load, 2),
            input_bytes=sum(map(_bytes_of, inputs)),
            output_rows=rows,
            output_sha256=sha256,
            sent_bytes=broker.stored_bytes() - stored,
            blocks=sent.blocks if sent else 0,
            dropped=sent.dropped if sent else 0,
            flows=broker.flows_since(ends) if is_captured and is_last else None,
        )
        print(
            f"{time.strftime('%H:%M:%S')} {case.name} {megabytes:g} MB, round {number}, {mode}: "
            f"CPU {run.cpu_s:.2f} s ({run.workers_s:.2f} in workers), wall {run.wall_s:.2f} s, "
            f"Kafka {run.kafka_cpu_s:.2f} s, {run.sent_bytes:,} bytes, load {run.load}",
            file=sys.stderr,
            flush=True,
        )
        return run


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m perf.capture",
        description="Measures what capture costs: jobs with lineage on (lineage, detailed), off (stock), and "
        "with the agent's operators but the capture lines taken out (nolin), in turn, on a Kafka of its own.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "--workloads", nargs="+", choices=CASES, default=["wordcount", "grep", "tweets"], metavar="NAME",
        help=f"of {', '.join(CASES)}",
    )  # fmt: skip
    parser.add_argument(
        "--sizes", nargs="+", type=float, default=[100.0], metavar="MB", help="sizes of the input"
    )
    parser.add_argument("--pairs", type=int, default=5, metavar="N", help="measured rounds of all modes")
    parser.add_argument(
        "--warm-ups", type=int, default=1, metavar="N", help="unmeasured runs of each mode before the rounds"
    )
    parser.add_argument(
        "--modes",
        nargs="+",
        choices=MODES,
        default=[mode for mode in MODES if mode not in (*PARTS, PACED, UNEXPLAINED)],
        metavar="MODE",
        help=f"of {', '.join(MODES)}",
    )
    parser.add_argument("--seed", type=int, default=1, help="of the generated input")
    parser.add_argument("--cores", type=int, default=2, help="local[N]")
    parser.add_argument("--memory", default="2g", help="spark.driver.memory")
    parser.add_argument("--name", default="capture", help="of the result files")
    parser.add_argument("--note", default="", help="a sentence for the result, such as what else was running")
    parser.add_argument(
        "--results",
        type=Path,
        default=ROOT / "perf" / "results",
        metavar="FOLDER",
        help="for the result files",
    )
    parser.add_argument(
        "--folder", type=Path, default=ROOT / ".cache" / "perf", metavar="FOLDER",
        help="for inputs, which are kept, and outputs, which are not",
    )  # fmt: skip
    parser.add_argument(
        "--jars", type=Path, default=ROOT / ".cache" / "lineage" / "jars", metavar="FOLDER",
        help="where Kafka's jars are or go",
    )  # fmt: skip
    return parser


def _about(options: argparse.Namespace) -> dict[str, Any]:
    import pyspark

    return {
        **about_machine("perf.capture", options.note),
        "Spark": f"{pyspark.__version__}, local[{options.cores}], driver memory {options.memory}",
        "Python": platform.python_version(),
        "seed": options.seed,
        "rounds": options.pairs,
        "unmeasured runs before": options.warm_ups,
    }


def about_machine(program: str, note: str) -> dict[str, Any]:
    """What a result says of where and when it was made: command, commit, time, machine, load, Java."""
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, cwd=ROOT, check=False
    ).stdout
    arguments = shlex.join(sys.argv[1:])
    return {
        "command": f"`python -m {program} {arguments}`".replace(" `", "`"),
        "commit": commit.strip() or "not known",
        "time": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "machine": f"{_processor()}, {os.cpu_count()} cores, "
        f"{psutil.virtual_memory().total / 2**30:.0f} GiB memory, {platform.system()} {platform.release()}",
        "load at the start": _load(),
        "note": note or "none",
        "Java": java.splitlines()[0],
    }


def _load() -> str:
    return " ".join(f"{load:.2f}" for load in os.getloadavg())


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )


def _bytes_of(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _write(path: Path, result: dict[str, Any]) -> None:
    path.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    path.with_suffix(".md").write_text(report.markdown(result))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (JobError, NoTableJarsError) as error:
        sys.exit(f"perf.capture: {error}")

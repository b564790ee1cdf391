"""Measures what a failing broker costs a job: seconds, memory of its workers, what waits, what was dropped.

    python -m perf.delivery [--rounds 3] [--megabytes 1] [--detailed] [--only dies,slow] [--out perf/results]

Each round runs the job once without lineage, once with a healthy broker and once with each failure, one
after the other, so that a machine that gets slower does so for all. A run is a whole `python job.py`, from
its start to its exit. With --detailed, values are captured too: then there is more lineage than the queues
hold, which is what memory is measured with. Writes delivery-DATE.json and .md, with `-detailed` in the name.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from perf.delivery.brokers import NO_CREATE, NO_WRITE, Broker, closed_port, silent_listener

ROOT = Path(__file__).parents[2]
SAMPLE_S = 0.05


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of the job. `worker_mib` is the highest peak of a Python worker's resident memory."""

    scenario: str
    seconds: float
    worker_mib: float
    output: str  # a digest of all rows
    counters: Mapping[str, int] | None


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A way to fail. `node` and `flow` begin the topics' names; `strike` comes in the middle of the job."""

    name: str
    says: str
    servers: Callable[[Broker], str] = lambda broker: broker.servers
    node: str = ""
    flow: str = ""
    strike: Callable[[Broker], None] | None = None
    mend: Callable[[Broker], None] | None = None
    environment: Mapping[str, str] | None = None


def scenarios(closed: str, silent: str, bare: Path) -> list[Scenario]:
    return [
        Scenario(name="healthy", says="the broker answers"),
        Scenario(name="down", says="nothing listens", servers=lambda _: closed),
        Scenario(name="silent", says="takes connections, never answers", servers=lambda _: silent),
        Scenario(name="dies", says="SIGKILL in the middle", strike=Broker.kill, mend=Broker.start),
        Scenario(name="hangs", says="SIGSTOP in the middle", strike=Broker.suspend, mend=Broker.resume),
        Scenario(name="slow", says="2 kB a second", servers=lambda broker: broker.slow_servers),
        Scenario(name="refused flows", says="may not write to the flow topic", flow=NO_WRITE),
        Scenario(name="refused events", says="may not write to the node topic", node=NO_WRITE),
        Scenario(name="too large", says="max.message.bytes=200 on the flow topic", flow="small-"),
        Scenario(name="no topic", says="the flow topic is not there and may not be made", flow=NO_CREATE),
        Scenario(
            name="no client",
            says="executors without confluent-kafka",
            environment={"spark.executorEnv.PYTHONPATH": str(bare)},
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=float, default=1)
    parser.add_argument("--detailed", action="store_true")
    parser.add_argument("--out", type=Path, default=ROOT / "perf" / "results")
    parser.add_argument("--only", default="", help="names of scenarios, with commas between")
    parser.add_argument("--jars", type=Path, default=ROOT / ".cache" / "lineage" / "jars")
    options = parser.parse_args()
    with ExitStack() as cleanup:
        folder = Path(cleanup.enter_context(tempfile.TemporaryDirectory()))
        words = folder / "words.txt"
        make = [sys.executable, "-m", "perf.workloads.generate", "words", "--seed", "1"]
        subprocess.run(
            [*make, "--megabytes", str(options.megabytes), "--out", str(words)], cwd=ROOT, check=True
        )
        (folder / "bare").mkdir()
        (folder / "bare" / "confluent_kafka.py").write_text("raise ImportError('none of it here')\n")
        broker = cleanup.enter_context(Broker(folder / "broker", options.jars, bytes_per_second=2_000))
        closed, silent = (cleanup.enter_context(start()) for start in (closed_port, silent_listener))
        chosen = scenarios(closed, silent, folder / "bare")
        if options.only:
            chosen = [scenario for scenario in chosen if scenario.name in options.only.split(",")]
        runs: list[Run] = []
        for number in range(options.rounds):
            for scenario in [None, *chosen]:
                runs.append(measure(broker, scenario, words, folder / "run", number, options.detailed))
                print(runs[-1], flush=True)
            write(options, number + 1, chosen, runs)


def write(options: argparse.Namespace, rounds: int, chosen: Sequence[Scenario], runs: Sequence[Run]) -> None:
    """The results so far."""
    options.out.mkdir(parents=True, exist_ok=True)
    suffix = "-detailed" if options.detailed else ""
    name = options.out / f"delivery-{date.today().isoformat()}{suffix}"
    about = {
        "python": platform.python_version(),
        "machine": f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end",
        "megabytes": options.megabytes,
        "rounds": rounds,
        "detailed": options.detailed,
    }
    name.with_suffix(".json").write_text(
        json.dumps({**about, "runs": [asdict(run) for run in runs]}, indent=1) + "\n"
    )
    name.with_suffix(".md").write_text(report(about, chosen, runs))
    print(name.with_suffix(".md").read_text())


def measure(
    broker: Broker, scenario: Scenario | None, words: Path, folder: Path, number: int, is_detailed: bool
) -> Run:
    """Run the job once; `None` is without lineage."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    conf = {"spark.master": "local[2]", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    if scenario is not None:
        topics = [f"{prefix}{scenario.name.replace(' ', '-')}-{number}" for prefix in
                  (scenario.node or "node-", scenario.flow or "flow-")]  # fmt: skip
        for topic in topics:
            if topic.startswith((NO_WRITE, "small-")):
                config = {"max.message.bytes": "200"} if topic.startswith("small-") else {}
                broker.create_topic(topic, 30, config)
        conf |= {
            "spark.lineage.enabled": "true",
            "spark.lineage.detailed": str(is_detailed).lower(),
            "spark.lineage.kafka.bootstrap.servers": scenario.servers(broker),
            "spark.lineage.spool.dir": str(folder / "spool"),
            "spark.lineage.topic.node": topics[0],
            "spark.lineage.topic.flow": topics[1],
            **(scenario.environment or {}),
        }
    arguments = " ".join(f"--conf {name}={value}" for name, value in conf.items())
    begin = time.monotonic()
    with (folder / "said.txt").open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", _RECORDING, str(ROOT / "perf/delivery/job.py"), str(words),
             str(folder / "out"), str(folder / "mark"), str(folder / "counters.json")],
            env={**os.environ, "PYSPARK_PYTHON": sys.executable,
                 "PYSPARK_SUBMIT_ARGS": f"{arguments} pyspark-shell"},
            stdout=said, stderr=said,
        )  # fmt: skip
        try:
            with worker_peaks(process.pid) as peaks:
                if scenario is not None and scenario.strike is not None:
                    while not (folder / "mark").exists() and process.poll() is None:
                        time.sleep(0.01)
                    scenario.strike(broker)
                code = process.wait()
        finally:
            process.kill()  # its JVM ends with it
    seconds = time.monotonic() - begin
    if scenario is not None and scenario.mend is not None:
        scenario.mend(broker)
    if code:
        raise RuntimeError(f"the job ended with {code}: {(folder / 'said.txt').read_text()[-3000:]}")
    rows = sorted(row for part in (folder / "out").glob("*/part-*") for row in part.read_text().splitlines())
    counters = folder / "counters.json"
    return Run(
        scenario="stock" if scenario is None else scenario.name,
        seconds=round(seconds, 2),
        worker_mib=round(max(peaks.values(), default=0) / 1024, 1),
        output=hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16],
        counters=json.loads(counters.read_text()) if counters.exists() else None,
    )


#: Runs the job as it is and writes down, at its very end, what the agent counted.
_RECORDING = """
import json, runpy, sys
from pyspark import SparkContext
*sys.argv, counters = sys.argv[1:]
starting, seen = SparkContext._do_init, []
def _do_init(self, *args, **kwargs):
    starting(self, *args, **kwargs)
    if "spark_agent.agent" in sys.modules:
        seen.append(sys.modules["spark_agent.agent"].active().session)
SparkContext._do_init = _do_init
runpy.run_path(sys.argv[0], run_name="__main__")
if seen:
    open(counters, "w").write(json.dumps(seen[0].events.counters))
"""


@contextmanager
def worker_peaks(driver: int) -> Iterator[dict[int, int]]:
    """Peak resident memory (VmHWM, KiB) of each Python worker below `driver`, by pid."""
    peaks: dict[int, int] = {}
    is_over = threading.Event()

    def sample() -> None:
        while not is_over.wait(SAMPLE_S):
            parents, commands, peak = {}, {}, {}
            for entry in Path("/proc").iterdir():
                if entry.name.isdecimal():
                    try:
                        status = (entry / "status").read_text()
                        commands[int(entry.name)] = (entry / "cmdline").read_bytes()
                    except OSError:
                        continue
                    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
                    parents[int(entry.name)] = int(fields["PPid"])
                    peak[int(entry.name)] = int(fields.get("VmHWM", "0 kB").split()[0])
            for pid, parent in parents.items():
                # Workers are forked from the daemon, which is a child of the driver's JVM.
                is_worker = b"pyspark.daemon" in commands.get(parent, b"")
                if is_worker and driver in _ancestors(pid, parents):
                    peaks[pid] = max(peaks.get(pid, 0), peak[pid])

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        is_over.set()
        thread.join()


def _ancestors(pid: int, parents: Mapping[int, int]) -> set[int]:
    descendants: set[int] = set()
    while pid in parents and pid not in descendants:
        descendants.add(pid)
        pid = parents[pid]
    return descendants


def report(about: Mapping[str, object], scenarios: Sequence[Scenario], runs: Sequence[Run]) -> str:
    """A table; medians, with the range where it matters."""

    def of(name: str) -> list[Run]:
        return [run for run in runs if run.scenario == name]

    stock = of("stock")
    plain_s = statistics.median(run.seconds for run in stock)
    plain_mib = statistics.median(run.worker_mib for run in stock)
    lines = [
        "# What a failing broker costs",
        "",
        f"`python -m perf.delivery`, {date.today().isoformat()}: {about['rounds']} rounds over "
        f"{about['megabytes']} MB, `local[2]`, detailed: {about['detailed']}, Python {about['python']}, "
        f"{about['machine']}. Stock: "
        f"{plain_s:.1f} s ({min(r.seconds for r in stock):.1f} to {max(r.seconds for r in stock):.1f}), "
        f"{plain_mib:.0f} MiB at the peak of the largest Python worker. Differences are within a round, "
        "median (smallest to largest).",
        "",
        "Waited: by the driver, and by all tasks, those side by side on the two slots added up. This is what "
        "a failure adds to the run time, however busy the machine is.",
        "",
        "| broker | | s more than stock | s more than healthy | MiB more a worker | driver waited, s | "
        "tasks waited, s | blocks | in the spool | dropped | events lost | same rows |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for scenario in scenarios:
        measured, healthy = of(scenario.name), of("healthy") or stock
        counters = [run.counters or {} for run in measured]
        cells = [
            scenario.name,
            scenario.says,
            _spread([run.seconds - other.seconds for run, other in zip(measured, stock, strict=True)]),
            _spread([run.seconds - other.seconds for run, other in zip(measured, healthy, strict=True)]),
            f"{max(run.worker_mib for run in measured) - plain_mib:.0f}",
            f"{max(counts.get('driver_waited_ms', 0) for counts in counters) / 1000:.1f}",
            f"{max(counts.get('waited_ms', 0) for counts in counters) / 1000:.1f}",
            *(str(statistics.median_low(counts.get(name, 0) for counts in counters))
              for name in ("blocks", "spooled", "dropped", "events_lost")),
            "yes" if {run.output for run in measured} == {run.output for run in stock} else "NO",
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):+.1f} ({min(values):+.1f} to {max(values):+.1f})"


if __name__ == "__main__":
    main()
